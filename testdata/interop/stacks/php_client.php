<?php
// Calls servers of stacks.wsdl, and the services of hhfr serve, with SoapClient of PHP: php_client.php WSDL CALL=URL…. Prints a line for each call.

function client($wsdl, $options = []) {
	return new SoapClient($wsdl, $options + ['cache_wsdl' => WSDL_CACHE_NONE, 'features' => SOAP_SINGLE_ELEMENT_ARRAYS]);
}

function fault($call) {
	try {
		$call();
		return 'no fault';
	} catch (SoapFault $f) {
		return $f->getMessage();
	}
}

function records($client, $rows) {
	return array_map('get_object_vars', $client->records(['record' => $rows])->record);
}

// services calls each service by its own description.
function services($base) {
	foreach (['1.1' => SOAP_1_1, '1.2' => SOAP_1_2] as $version => $number) {
		$of = fn($name) => client("$base/$name?wsdl", ['soap_version' => $number]);
		$say = fn($name, $said) => print("$name $version: $said\n");
		$say('concat', $of('concat')->concat(['item' => ['thin ', ' links', 'é<&>']])->result);
		$say('sum', $of('sum')->sum(['item' => [1.5, -0.25]])->result);
		$rows = records($of('records'), [['text' => '<one>', 'number' => -1, 'flag' => true],
			['text' => 'zwei é', 'number' => 2147483647, 'flag' => false]]);
		$say('records', implode(', ', array_map(fn($r) => "$r[text] $r[number] " . json_encode($r['flag']), $rows)));
		$say('geoip', json_encode($of('geoip')->geoip(['address' => '129.125.102.100'])->result));
		$say('refused', fault(fn() => $of('geoip')->geoip(['address' => 'nowhere'])));
		$say('blob', base64_encode($of('blob')->blob(['size' => 30, 'seed' => 7])->payload));
		$say('ticker', $of('ticker')->ticker(new stdClass)->number > 0 ? 'ticks' : 'no tick');
		$ledger = $of('ledger');
		$at = $ledger->add(['id' => 'a-1', 'amount' => -5])->count;
		$entry = $ledger->read(['from' => $at, 'most' => 1])->entry[0];
		$say('ledger', "$entry->id $entry->amount");
		$context = $of('context');
		$id = $context->begin(['type' => 'urn:example:type', 'timeout' => 60])->context->{'context-identifier'};
		$say('context', $context->getStatus(['context-identifier' => $id]));
	}
}

$rows = [];
for ($i = 0; $i < 200; $i++) {
	$rows[] = ['text' => "row $i: <&> é", 'number' => $i * 3 - 100, 'flag' => $i % 3 == 0];
}
foreach (array_slice($argv, 2) as $argument) {
	[$call, $url] = explode('=', $argument, 2);
	if ($call == 'services') {
		services($url);
		continue;
	}
	$client = client($argv[1], ['location' => $url]);
	switch ($call) {
		case 'fault':
			$said = fault(fn() => records($client, [['text' => 'refuse', 'number' => 0, 'flag' => false]]));
			break;
		case 'note':
			$client->note(['text' => 'remember <this>']);
			$said = 'sent';
			break;
		default:
			for ($i = 0; $i < 3; $i++) {
				$got = records($client, $rows);
			}
			$said = $got == $rows ? count($got) . ' rows' : 'other rows';
	}
	print("$call: $said\n");
}
