# Calls servers of stacks.wsdl, and the services of hhfr serve, with SOAP::Lite: soaplite_client.pl WSDL CALL=URL…. Prints a line for each call.
use strict;
use warnings;
use utf8;
use open ':std', ':utf8';
use MIME::Base64 'encode_base64';
use SOAP::Lite;

# The stubs of service(WSDL) take a description for RPC: parameters go in no namespace, and empty
# where the schema has elements of a complex type. So calls are made one level below, with what the
# description says: where, by which action, in which namespace, with which names.
sub client {
	my ($wsdl, $version, $url) = @_;
	SOAP::Lite->soapversion($version);
	my $schema = SOAP::Schema->new(schema_url => $wsdl);
	{
		local $SIG{__WARN__} = sub { }; # of elements that are there by reference
		$schema->parse;
	}
	my ($operations) = values %{ $schema->services };
	return sub {
		my ($name, @values) = @_;
		my $o = $operations->{$name} or die "$wsdl has no operation $name";
		my %declared = map { ($_->attr->{name} // '') => 1 } @{ $o->{parameters} };
		my @parameters;
		while (my ($parameter, $value) = splice @values, 0, 2) {
			$declared{$parameter} or die "$name of $wsdl has no $parameter";
			push @parameters, element($parameter, $value);
		}
		my $lite = SOAP::Lite->proxy($url // $o->{endpoint}->value)->default_ns($o->{namespace})->autotype(0);
		$lite->on_action(sub { '"' . $o->{soapaction}->value . '"' });
		$lite->on_fault(sub { });
		return $lite->call($name, @parameters);
	};
}

sub element {
	my ($name, $value) = @_;
	return SOAP::Data->name($name => SOAP::Utils::encode_data($value))->type('') unless ref $value; # never base64
	return SOAP::Data->name($name => \SOAP::Data->value(map { element(@$_) } @$value));
}

sub rows { map { (record => [ [ text => $_->[0] ], [ number => $_->[1] ], [ flag => $_->[2] ] ]) } @_ }

sub got { join ', ', map { "$_->{text} $_->{number} $_->{flag}" } shift->valueof('//record') }

# fault is what a fault says, of SOAP 1.1 or 1.2.
sub fault { $_[0]->faultstring // $_[0]->valueof('//Fault/Reason/Text') }

# services calls each service by its own description.
sub services {
	my ($base) = @_;
	for my $version ('1.1', '1.2') {
		my $of = sub { client("$base/$_[0]?wsdl", $version) };
		my $say = sub { print "$_[0] $version: $_[1]\n" };
		$say->('concat', $of->('concat')->('concat', item => 'thin ', item => ' links', item => 'é<&>')->result);
		$say->('sum', $of->('sum')->('sum', item => 1.5, item => -0.25)->result);
		$say->('records', got($of->('records')->('records', rows(['<one>', -1, 'true'], ['zwei é', 2147483647, 'false']))));
		$say->('geoip', $of->('geoip')->('geoip', address => '129.125.102.100')->result);
		$say->('refused', fault($of->('geoip')->('geoip', address => 'nowhere')));
		my $payload = $of->('blob')->('blob', size => 30, seed => 7)->result;
		$say->('blob', $payload);
		$say->('ticker', $of->('ticker')->('ticker')->result > 0 ? 'ticks' : 'no tick');
		my $ledger = $of->('ledger');
		my $at = $ledger->('add', id => 'a-1', amount => -5)->result;
		my $entry = $ledger->('read', from => $at, most => 1)->valueof('//entry');
		$say->('ledger', "$entry->{id} $entry->{amount}");
		my $context = $of->('context');
		my $id = $context->('begin', type => 'urn:example:type', timeout => 60)->valueof('//context-identifier');
		$say->('context', $context->('getStatus', 'context-identifier' => $id)->valueof('//status'));
	}
}

my ($wsdl, @calls) = @ARGV;
my @rows = map { [ "row $_: <&> é", $_ * 3 - 100, $_ % 3 == 0 ? 'true' : 'false' ] } 0 .. 199;
for (@calls) {
	my ($call, $url) = split /=/, $_, 2;
	if ($call eq 'services') {
		services($url);
		next;
	}
	my $client = client("file://$wsdl", '1.1', $url);
	my $said;
	if ($call eq 'fault') {
		$said = fault($client->('records', rows(['refuse', 0, 'false'])));
	} elsif ($call eq 'note') {
		$client->('note', text => 'remember <this>');
		$said = 'sent';
	} else {
		my $got;
		$got = got($client->('records', rows(@rows))) for 1 .. 3;
		$said = $got eq join(', ', map { "@$_" } @rows) ? @rows . ' rows' : 'other rows';
	}
	print "$call: $said\n";
}
