/* SPDX-License-Identifier: MIT */
/*
 * Prints the unwind table of an ELF file, a row a line: "address cfa reg=rule ...". Rules are written as
 * readelf(1) does: c-8 saved at CFA - 8, v-8 is CFA - 8, s kept, u lost, exp and vexp expressions, r3 in
 * register 3.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "image/unwind-table.h"

static void print_rule(const struct unwind_rule *rule)
{
	static const char *const words[] = {
		[RULE_LOST] = "u",
		[RULE_KEPT] = "s",
		[RULE_AT_EXPRESSION] = "exp",
		[RULE_IS_EXPRESSION] = "vexp",
	};

	printf(" %u=", rule->reg);
	if (rule->kind == RULE_AT || rule->kind == RULE_IS)
		printf("%c%+" PRId32, rule->kind == RULE_AT ? 'c' : 'v', rule->offset);
	else if (rule->kind == RULE_REGISTER)
		printf("r%u", rule->other);
	else
		fputs(words[rule->kind], stdout);
}

static void print_row(uint64_t address, const struct unwind_rules *rules)
{
	printf("%" PRIx64 " ", address);
	if (rules->cfa.kind == RULE_REGISTER)
		printf("%u%+" PRId32, rules->cfa.other, rules->cfa.offset);
	else
		fputs("exp", stdout);
	for (unsigned i = 0; i < rules->count; i++)
		print_rule(&rules->saved[i]);
	putchar('\n');
}

int main(int argc, char **argv)
{
	struct unwind_table table = { 0 };
	int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1, error = 0;

	if (fd < 0 || unwind_table_read(&table, fd) < 0) {
		fprintf(stderr, "usage: print-rows ELF\n");
		return 2;
	}
	/* Each function is run by a look-up at its start. */
	vec_each (&table.parts[0].entries, entry)
		unwind_table_find(&table, entry->start, &error);
	vec_each (&table.flats, flat)
		for (uint32_t i = 0; i < flat->count; i++) {
			const struct unwind_row *row = &table.rows.at[flat->first + i];
			print_row(flat->start + row->start, table.rules.at[row->rules]);
		}
	unwind_table_done(&table);
	close(fd);
	return error;
}
