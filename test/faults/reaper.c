/*
 * Runs a command and reaps every process that the command leaves behind.
 *
 *   reaper COMMAND [ARGUMENT...]
 *
 * A process that has ended keeps its id until its parent waits for it.  If the
 * parent ended first, process 1 inherits the child.  In a container, process 1
 * may be a program that never waits.  Then a server cannot be started again
 * after kill -9, since its postmaster keeps its id.
 *
 * Ends with the command's status, or 128 and its signal.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
	pid_t		command;
	pid_t		ended;
	int			status;

	if (argc < 2 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 ||
		(command = fork()) < 0)
	{
		fprintf(stderr, "reaper: %s\n",
				argc < 2 ? "a command is missing" : strerror(errno));
		return 126;
	}
	if (command == 0)
	{
		execvp(argv[1], argv + 1);
		fprintf(stderr, "reaper: %s: %s\n", argv[1], strerror(errno));
		_exit(127);
	}
	do
		ended = wait(&status);
	while (ended != command && (ended > 0 || errno == EINTR));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
