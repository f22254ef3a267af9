package TapTally;

# The harness of prove and pg_prove, with three things added: a failed test is
# printed with what it said, a skipped one is named, and both go, with the
# counts, to the file that FMSORT_TALLY names (see script/lib/common.sh).

use strict;
use warnings;

use parent 'TAP::Harness';

# Of one failed test, and of a program that ends badly.
my $lines_max = 12;
my $skipped   = 0;
my @told;

sub new
{
	my ($class, @args) = @_;
	my $self = $class->SUPER::new(@args);

	$self->callback(made_parser => \&watch);
	$self->callback(after_runtests => \&tally);
	return $self;
}

sub report
{
	my (@lines) = @_;

	print "\n", map { "$_\n" } @lines;
	push @told, @lines;
	return;
}

sub watch
{
	my ($parser, $job) = @_;
	my $file = $job->[1];
	my @said;          # since the test before
	my $failing = 0;

	my $end_of_test = sub {
		report(@said[ 0 .. ($#said < $lines_max ? $#said : $lines_max) ])
		  if $failing;
		@said    = ();
		$failing = 0;
	};

	$parser->callback(
		test => sub {
			my ($test) = @_;

			$end_of_test->();
			if (!$test->is_ok)
			{
				$failing = 1;
				push @said, "$file: " . $test->as_string;
			}
			skipped($file, $test->description || 'test ' . $test->number,
				$test->explanation) if $test->has_skip;
		});
	$parser->callback(
		plan => sub {
			my ($plan) = @_;

			skipped($file, 'all of it', $plan->explanation)
			  if ($plan->directive || '') eq 'SKIP';
		});
	foreach my $kind (qw(comment unknown))
	{
		$parser->callback($kind => sub { push @said, '    ' . $_[0]->raw });
	}
	# A program that died has said why at last.
	$parser->callback(
		EOF => sub {
			my ($ended) = @_;

			if (!$failing && ($ended->exit || $ended->parse_errors))
			{
				splice @said, 0, -$lines_max if @said > $lines_max;
				unshift @said, "$file: exit status " . $ended->exit,
				  $ended->parse_errors;
				$failing = 1;
			}
			$end_of_test->();
		});
	return;
}

sub skipped
{
	my ($file, $what, $why) = @_;

	$skipped++;
	printf "\nskipped: %s: %s (%s)\n", $file, $what, $why || 'no reason given';
	push @told, "$file: $what is skipped: " . ($why || 'no reason given')
	  if ($ENV{CI} || '') eq 'true';
	return;
}

sub tally
{
	my ($aggregate) = @_;
	my $failed = $aggregate->failed;
	my $passed = $aggregate->passed - $aggregate->skipped;

	# A program that died or broke its plan has failed, whatever it counted.
	foreach my $parser ($aggregate->parsers)
	{
		$failed++ if $parser->has_problems && !$parser->failed;
	}

	return unless $ENV{FMSORT_TALLY};
	open my $out, '>>', $ENV{FMSORT_TALLY} or die "$ENV{FMSORT_TALLY}: $!";
	print $out "+ $passed $failed $skipped\n", map { "! $_\n" } @told;
	close $out;
	return;
}

1;
