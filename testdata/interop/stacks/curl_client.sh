#!/bin/sh
# Calls servers of stacks.wsdl with curl: curl_client.sh PAYLOAD CALL=URL…. Prints a line for each call.
payload=$1
shift
envelope() {
	printf '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/">%s<s:Body>%s</s:Body></s:Envelope>' "$1" "$2"
}
post() {
	curl -s -S -H 'Content-Type: text/xml; charset=utf-8' -H 'SOAPAction: ""' --data-binary @- "$@"
}
record() {
	printf '<record><text>%s</text><number>%d</number><flag>%s</flag></record>' "$1" "$2" "$3"
}
records() {
	for i in $(seq 0 199); do record "row $i: &lt;&amp;> é" $((i * 3 - 100)) "$([ $((i % 3)) = 0 ] && echo true || echo false)"; done
}
# rows says how many rows an answer has that have the sent texts.
rows() {
	grep -oE 'row [0-9]+: &lt;&amp;(>|&gt;) é<' | wc -l | tr -d ' \n'
	echo ' rows'
}
for one; do
	call=${one%%=*} url=${one#*=}
	printf '%s: ' "$call"
	case $call in
	fault)
		envelope '' "<records xmlns=\"urn:hhfr:peer:1\">$(record refuse 0 false)</records>" | post "$url" |
			grep -o '<faultstring[^<]*<' | sed 's/<faultstring[^>]*>//; s/<//'
		;;
	note)
		envelope '' '<note xmlns="urn:hhfr:peer:1"><text>remember &lt;this></text></note>' | post -f "$url" && echo sent
		;;
	upload)
		{
			printf -- '--boundary-of-parts\r\nContent-Type: application/xop+xml; charset=utf-8; type="text/xml"\r\nContent-ID: <root>\r\n\r\n'
			envelope '' '<upload xmlns="urn:hhfr:peer:1"><data><i:Include xmlns:i="http://www.w3.org/2004/08/xop/include" href="cid:payload"/></data></upload>'
			printf -- '\r\n--boundary-of-parts\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: binary\r\nContent-ID: <payload>\r\n\r\n'
			cat "$payload"
			printf -- '\r\n--boundary-of-parts--\r\n'
		} | curl -s -S -H 'Content-Type: multipart/related; type="application/xop+xml"; start="<root>"; start-info="text/xml"; boundary=boundary-of-parts' \
			-H 'SOAPAction: ""' --data-binary @- "$url" |
			tr -d '\n' | sed -E 's/.*<[^>]*size>([0-9]+)<.*sha256>([0-9a-f]+)<.*/\1 \2\n/'
		;;
	addressed)
		envelope "<s:Header xmlns:a=\"http://www.w3.org/2005/08/addressing\"><a:Action>urn:hhfr:peer:1/stacksPortType/records</a:Action><a:MessageID>urn:uuid:$(cat /proc/sys/kernel/random/uuid)</a:MessageID><a:To>$url</a:To></s:Header>" \
			"<records xmlns=\"urn:hhfr:peer:1\">$(records)</records>" | post "$url" | rows
		;;
	*)
		envelope '' "<records xmlns=\"urn:hhfr:peer:1\">$(records)</records>" | post "$url" | rows
		;;
	esac
done
