/* SPDX-License-Identifier: MIT */
/*
 * demangle: names whose meaning stands in the Itanium C++ ABI (section 5.1), in Rust's RFC 2603 and
 * the README of rustc-demangle, and in the D ABI.
 */
#include <stdlib.h>
#include <tally/symbolizer.h>

#include "image/demangle.h"
#include "tap.h"

static void check_name(const char *mangled, bool parameters, const char *want)
{
	char *got = demangle(mangled, parameters);

	check_str(got, want);
	free(got);
}

static void itanium_examples(void)
{
	check_name("_Z1fv", true, "f()");
	check_name("_Z1fi", true, "f(int)");
	check_name("_Z3foo3bar", true, "foo(bar)");
	check_name("_Zrm1XS_", true, "operator%(X, X)");
	check_name("_ZplR1XS0_", true, "operator+(X&, X&)");
	check_name("_ZlsRK1XS1_", true, "operator<<(X const&, X const&)");
	check_name("_ZN3FooIA4_iE3barE", true, "Foo<int [4]>::bar");
	check_name("_Z5firstI3DuoEvS0_", true, "void first<Duo>(Duo)");
}

static void frames_leave_parameters_out(void)
{
	check_name("_Z1fi", false, "f");
	check_name("_Z5firstI3DuoEvS0_", false, "first<Duo>");
	check_name("_ZN3foo3barEv", false, "foo::bar");
}

static void rust_old_and_new(void)
{
	/* The hash that tells builds apart is left out. */
	check_name("_ZN3foo3bar17h05af221e174051e9E", true, "foo::bar");
	check_name("_ZN3foo3bar17h05af221e174051e9E", false, "foo::bar");
	check_name("_RNvCs1234_7mycrate3foo", true, "mycrate::foo");
	check_name("_RNvNtCs1234_7mycrate3foo3bar", false, "mycrate::foo::bar");
	check_name("_RNvCs1234_7mycrate3foo.llvm.1234567890", false, "mycrate::foo");
}

static void d_functions(void)
{
	check_name("_D8demangle4testFaZv", true, "demangle.test(char)");
	check_name("_Dmain", true, "D main");
}

static void what_compilers_and_linkers_append(void)
{
	check_name("_ZN3foo3barEv.cold", true, "foo::bar() [clone .cold]");
	check_name("_Z1fv@@VERS_1", true, "f()@@VERS_1");
	check_name("_Z1fv.llvm.42", true, "f()");
}

static void plain_names_stay(void)
{
	static const char *const names[] = {
		"",
		"_",
		"_Z",
		"_R",
		"_D",
		"main",
		"_start",
		"_DYNAMIC",
		"_GLOBAL_OFFSET_TABLE_",
		"_Zzzzz",
		"_ZN",
		"_RNv",
		"__libc_start_main",
		"_ZN3fo",
		"_Z9999999999999f",
		"@",
		"_Z@",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		check_str(demangle(names[i], true), NULL);
	check_str(tally_demangle("main"), NULL);
}

static void public_one_has_parameters(void)
{
	char *got = tally_demangle("_Z1fi");

	check_str(got, "f(int)");
	free(got);
}

/* f(A<int,int>, A<S0,S0>, A<S1,S1>, ...): each parameter is twice as long as the one before. */
static void names_that_explode_are_refused(void)
{
	char name[1024] = "_Z1f1AIiiES_IS0_S0_E";
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	for (int i = 1; i < 36; i++) {
		size_t len = strlen(name);
		snprintf(name + len, sizeof(name) - len, "S_IS%c_S%c_E", digits[i], digits[i]);
	}
	check_str(demangle(name, true), NULL);
}

static void deep_and_long_names_are_refused(void)
{
	static char name[100000];

	memset(name, 'P', sizeof(name) - 1);
	memcpy(name, "_Z1f", 4);
	check_str(demangle(name, true), NULL);
	name[8000] = '\0';
	free(demangle(name, true)); /* libiberty's own limit decides; no crash */
	memset(name, 'Q', 7999);
	memcpy(name, "_D8demangle4test", 16);
	check_str(demangle(name, true), NULL);
}

int main(void)
{
	tap_run(itanium_examples);
	tap_run(frames_leave_parameters_out);
	tap_run(rust_old_and_new);
	tap_run(d_functions);
	tap_run(what_compilers_and_linkers_append);
	tap_run(plain_names_stay);
	tap_run(public_one_has_parameters);
	tap_run(names_that_explode_are_refused);
	tap_run(deep_and_long_names_are_refused);
	return tap_end();
}
