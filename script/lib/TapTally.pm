package TapTally;

# The harness of prove and pg_prove, with two things added: every skipped
# test is named, and the counts go to the file that FMSORT_TALLY names, as
# one line "passed failed skipped", for script/test to add up.

use strict;
use warnings;

use parent 'TAP::Harness';

my $skipped = 0;

sub new
{
	my ($class, @args) = @_;
	my $self = $class->SUPER::new(@args);

	$self->callback(made_parser => \&watch);
	$self->callback(after_runtests => \&tally);
	return $self;
}

sub watch
{
	my ($parser, $job) = @_;
	my $file = $job->[1];

	$parser->callback(
		test => sub {
			my ($test) = @_;

			return unless $test->has_skip;
			$skipped++;
			printf "\nskipped: %s: %s (%s)\n", $file,
			  $test->description || 'test ' . $test->number,
			  $test->explanation || 'no reason given';
		});
	$parser->callback(
		plan => sub {
			my ($plan) = @_;

			return unless ($plan->directive || '') eq 'SKIP';
			$skipped++;
			printf "\nskipped: %s: all of it (%s)\n", $file,
			  $plan->explanation || 'no reason given';
		});
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
	print $out "$passed $failed $skipped\n";
	close $out;
}

1;
