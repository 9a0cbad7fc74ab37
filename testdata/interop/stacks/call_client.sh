#!/bin/sh
# Calls servers of stacks.wsdl with hhfr call: call_client.sh WSDL CALL=URL…. Prints a line for each call.
set -eu
wsdl=$1
shift
rows=$(awk 'BEGIN {
	for (i = 0; i < 200; i++)
		printf "%s{\"text\":\"row %d: <&> é\",\"number\":%d,\"flag\":%s}", i ? "," : "", i, i * 3 - 100, i % 3 ? "false" : "true"
}')
for argument; do
	call=${argument%%=*} url=${argument#*=}
	case $call in
	records)
		echo "records: $(hhfr call "$wsdl" records "{\"record\":[$rows]}" --plain --to "$url" -o values | grep -c '/text=row [0-9]*: <&> é$') rows"
		;;
	fault)
		hhfr call "$wsdl" records record/0/text=refuse record/0/number=1 record/0/flag=true --plain --to "$url" 2>&1 > /dev/null |
			sed -n 's/^hhfr: fault/fault/p'
		;;
	note)
		hhfr call "$wsdl" note text=x --plain --to "$url" > /dev/null
		echo "note: sent"
		;;
	esac
done
