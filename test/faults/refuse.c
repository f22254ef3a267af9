/*-------------------------------------------------------------------------
 *
 * refuse.c
 *	  Runs a program under a kernel that refuses some system calls.
 *
 *	  refuse ERRNO CALL... -- PROGRAM ARGUMENT...
 *
 * The program and all that it starts get that error number, as under the
 * filter of a container's runtime.  A call is a name of the table below.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct
{
	const char *name;
	unsigned	number;
}			calls[] = {
	{"fallocate", SYS_fallocate},
	{"io_uring_enter", SYS_io_uring_enter},
	{"io_uring_register", SYS_io_uring_register},
	{"io_uring_setup", SYS_io_uring_setup},
	{"madvise", SYS_madvise}
};

#define CALLS	(sizeof(calls) / sizeof(calls[0]))

/* A comparison each, what precedes them and what follows. */
static struct sock_filter filter[CALLS * 2 + 2];
static unsigned short length = 0;

static void
add(struct sock_filter instruction)
{
	if (length == sizeof(filter) / sizeof(filter[0]))
	{
		fprintf(stderr, "refuse: too many calls\n");
		exit(2);
	}
	filter[length++] = instruction;
}

static unsigned
number_of(const char *name)
{
	for (size_t i = 0; i < CALLS; i++)
	{
		if (strcmp(calls[i].name, name) == 0)
			return calls[i].number;
	}
	fprintf(stderr, "refuse: unknown call \"%s\"\n", name);
	exit(2);
}

int
main(int argc, char **argv)
{
	struct sock_fprog program = {.filter = filter};
	int			at = 2;

	add((struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
									  offsetof(struct seccomp_data, nr)));
	for (; at < argc && strcmp(argv[at], "--") != 0; at++)
	{
		add((struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
										  number_of(argv[at]), 0, 1));
		add((struct sock_filter) BPF_STMT(BPF_RET | BPF_K,
										  SECCOMP_RET_ERRNO |
										  atoi(argv[1])));
	}
	add((struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	if (at + 1 >= argc)
	{
		fprintf(stderr, "usage: refuse ERRNO CALL... -- PROGRAM ARGUMENT...\n");
		return 2;
	}

	program.len = length;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
	{
		perror("refuse: prctl");
		return 2;
	}
	execvp(argv[at + 1], &argv[at + 1]);
	perror(argv[at + 1]);
	return 2;
}
