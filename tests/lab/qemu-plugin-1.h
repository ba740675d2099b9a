/* SPDX-License-Identifier: MIT */
/*
 * What the referee uses of version 1 of QEMU's interface for plugins (QEMU 4.2 to 8.1; "QEMU TCG Plugins"
 * in its documentation), which no package of Debian has. Other versions refuse a plugin of this one.
 */
#ifndef TESTS_LAB_QEMU_PLUGIN_1_H
#define TESTS_LAB_QEMU_PLUGIN_1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLUGIN_EXPORT       __attribute__((visibility("default")))
#define PLUGIN_VERSION      1
#define PLUGIN_NO_REGISTERS 0 /* enum qemu_plugin_cb_flags */
#define PLUGIN_ADD_U64      0 /* enum qemu_plugin_op */

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

typedef struct {
	const char *target_name;
	struct {
		int min, cur;
	} version;
	bool system_emulation;
	int smp_vcpus, max_vcpus;
} qemu_info_t;

/* What a plugin exports. */
extern PLUGIN_EXPORT int qemu_plugin_version;
PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
				      char **argv);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   void (*translated)(qemu_plugin_id_t id,
							      struct qemu_plugin_tb *tb));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    void (*executed)(unsigned int vcpu, void *data),
					    int flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn, int op, void *at,
						uint64_t operand);

#endif
