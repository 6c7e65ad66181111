# The conversation that README.md shows. This script has it with stepwise-mcp, writes down what was said, and compares. If they differ,
# it prints the block that belongs into README.md. Ids are replaced by names, and of each answer only some keys are shown.

use strict;
use warnings;
use utf8;
use lib 'test/t', 'test/mcp';
use Encode qw(encode_utf8 decode_utf8);
use JSON::PP;
use Pipe;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $json = JSON::PP->new->allow_nonref->canonical->space_after;
my $node = start_server('transcript');
sql('CREATE EXTENSION pg_stepwise');
my $pipe = Pipe->start($node->connstr('postgres'));
my ($id, $said, %ids) = (0, '');

# Give the ids of a new plan their names, which stand for them from then on.
sub name_ids
{
	my ($answer) = @_;
	@ids{qw(PLAN STEP1 STEP2)} = ($answer->{planId}, @{ $answer->{stepIds} }) if $answer->{stepIds};
	return;
}

sub with_names
{
	my ($text) = @_;
	my %names = reverse %ids;
	return $text =~ s/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/$names{$1}/gr;
}

# Some keys of an object, in this order. A key with a list after it is an object of which those are shown.
sub some_keys
{
	my ($object, @keys) = @_;
	my @shown;
	while (defined(my $key = shift @keys))
	{
		my $value = ref $keys[0] ? some_keys($object->{$key}, @{ shift @keys }) : $json->encode($object->{$key});
		push @shown, qq("$key": $value);
	}
	return '{' . join(', ', @shown) . '}';
}

# Call a tool, with arguments as they are shown, answer the question that may come back, and write it all down.
sub call
{
	my ($tool, $arguments, @keys) = @_;
	my $sent = ($arguments =~ s/\b(PLAN|STEP[12])\b/$ids{$1}/gr) =~ s/\n//gr;

	$said .= "→ $tool $arguments\n";
	$id++;
	$pipe->send(encode_utf8(qq({"jsonrpc": "2.0", "id": $id, "method": "tools/call", "params": {"name": "$tool", "arguments": $sent}})));
	my $message = $pipe->receive;
	if (($message->{method} // '') eq 'elicitation/create')
	{
		my $reply = '{"action": "accept", "content": {"decision": "approve"}}';
		$said .= "← elicitation/create " . some_keys($message->{params}, 'message') . "\n→ $reply\n";
		$pipe->send({ jsonrpc => '2.0', id => $message->{id}, result => decode_json($reply) });
		$message = $pipe->receive;
	}
	my $answer = $message->{result}{structuredContent};
	name_ids($answer);
	$said .= '← ' . with_names(some_keys($answer, @keys)) . "\n";
	return;
}

$pipe->ask(++$id, 'initialize', { protocolVersion => '2025-11-25', capabilities => { elicitation => {} } });
call('create_plan', <<'JSON' =~ s/\n\z//r, qw(planId stepIds planStatus));
{"name": "report", "goal": "A page on grid batteries", "steps": [
    {"name": "search", "instructions": "Find a source", "binding": "found"},
    {"name": "write", "instructions": "Write a page from ${bindings.found}", "review": {"when": "after", "summary": "Publish it?"}}]}
JSON
call('get_next_step', '{"plan_id": "PLAN"}', qw(status stepId instructions));
call('submit_step_result', '{"step_id": "STEP1", "result": "a.example"}', next => [qw(status stepId instructions)]);
call('submit_step_result', '{"step_id": "STEP2", "result": "Batteries ..."}', submitted => ['stepStatus'], next => [qw(status message)]);
$pipe->stop;
$node->stop;

my ($shown) = decode_utf8(slurp_file('README.md')) =~ /^```console\n(→ .*?)^```$/ms;
ok(($shown // '') eq $said, 'README.md shows what was said') or diag("This belongs into README.md:\n", encode_utf8($said));
done_testing();
