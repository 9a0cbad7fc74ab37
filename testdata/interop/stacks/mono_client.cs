// Calls servers of stacks.wsdl, and the services of hhfr serve, with SoapHttpClientProtocol of Mono: mono_client CALL=URL…. Prints a line for
// each call.
using System;
using System.Linq;
using System.Text;
using System.Web.Services.Protocols;
using Stacks11;

static class Client {
	static readonly Record[] rows = Enumerable.Range(0, 200)
		.Select(i => new Record { text = "row " + i + ": <&> é", number = i * 3 - 100, flag = i % 3 == 0 }).ToArray();

	static string Call(string call, stacks client) {
		Record[] got = null;
		switch (call) {
		case "fault":
			try {
				got = new[] { new Record { text = "refuse" } };
				client.records(ref got);
				return "no fault";
			} catch (SoapException e) {
				return e.Message;
			}
		case "note":
			client.note("remember <this>");
			return "sent";
		default:
			for (int i = 0; i < 3; i++) {
				got = rows;
				client.records(ref got);
			}
			bool same = got.Zip(rows, (a, b) => a.text == b.text && a.number == b.number && a.flag == b.flag).All(x => x);
			return same && got != rows ? got.Length + " rows" : "other rows";
		}
	}

	static void Main(string[] args) {
		Console.OutputEncoding = new UTF8Encoding(false);
		foreach (string argument in args) {
			string[] one = argument.Split(new[] { '=' }, 2);
			if (one[0] == "services") {
				Calls11.All(one[1]);
				Calls12.All(one[1]);
				continue;
			}
			Console.WriteLine("{0}: {1}", one[0], Call(one[0], new stacks { Url = one[1] }));
		}
	}
}
