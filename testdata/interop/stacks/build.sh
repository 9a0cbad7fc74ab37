#!/bin/sh
# Builds the programs that call and serve stacks.wsdl: build.sh FOLDER PART…, where a part is keys, java, python, node, gsoap or load.
set -e
from=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"
shift
for part; do
	case $part in
	keys)
		openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=peer 2> keys.log || { cat keys.log; exit 1; }
		;;
	java)
		mvn -q -B -f "$from/pom.xml" dependency:copy-dependencies -DoutputDirectory="$PWD/lib"
		javac -proc:none -nowarn -encoding UTF-8 -cp 'lib/*' -d classes "$from"/*.java
		# Axis reads the names of parameters from classes, of an old format.
		javac -proc:none -nowarn -Xlint:-options --release 8 -g -cp 'lib/*' -d classes "$from"/../axis/*.java
		;;
	python)
		python3 -m venv venv
		venv/bin/python -m pip install --quiet --disable-pip-version-check -r "$from/requirements.txt"
		;;
	node)
		cp "$from/package.json" .
		npm install --prefer-offline --no-audit --no-fund --silent
		;;
	gsoap) # with its plug-ins for WS-Addressing and WS-Security
		wsdl2h -c -o types.h "$from/stacks.wsdl"
		(printf '#import "wsa5.h"\n#import "wsse.h"\n'; cat types.h) > stacks.h
		g=/usr/share/gsoap
		soapcpp2 -c -1 -x -I$g/import:$g stacks.h
		# shellcheck disable=SC2046
		gcc -w "${OPTIMIZE:--O0}" -I. -I$g -I$g/plugin $(pkg-config --cflags gsoapssl) -o gsoap "$from/gsoap.c" soapC.c soapClient.c soapServer.c \
			$g/plugin/wsaapi.c $g/plugin/wsseapi.c $g/plugin/smdevp.c $g/plugin/mecevp.c $g/plugin/threads.c \
			$g/custom/struct_timeval.c $(pkg-config --static --libs gsoapssl) -lpthread
		;;
	load) # gSOAP as fast as it can be
		mkdir -p gsoap-load
		wsdl2h -c -o gsoap-load/load.h "$from/load.wsdl"
		soapcpp2 -c -1 -x -S -I/usr/share/gsoap/import:/usr/share/gsoap -d gsoap-load gsoap-load/load.h
		# shellcheck disable=SC2046
		gcc -w -O2 -DNDEBUG -Igsoap-load $(pkg-config --cflags gsoap) -o load "$from/load.c" gsoap-load/soapC.c gsoap-load/soapServer.c \
			$(pkg-config --static --libs gsoap) -lpthread
		;;
	*)
		echo "no part $part" >&2
		exit 2
		;;
	esac
done
