// Calls a server of stacks.wsdl with node-soap: node_client.js kept|closed VALUES WSDL URL. Prints the microseconds of each call.
const fs = require('fs')
const http = require('http')
const soap = require('soap')

const [connections, values, wsdl, url] = process.argv.slice(2)

async function main() {
  const keepAlive = connections === 'kept'
  const client = await soap.createClientAsync(wsdl, { endpoint: url })
  const options = { httpAgent: new http.Agent({ keepAlive }), forever: keepAlive }
  for (const call of fs.readFileSync(values, 'utf8').split('\n\n').slice(0, -1)) {
    const record = call.split('\n').map((line) => line.split('\t')).map(([text, number, flag]) => ({ text, number: Number(number), flag: flag === 'true' }))
    const began = process.hrtime.bigint()
    const [got] = await client.recordsAsync({ record }, options)
    const took = process.hrtime.bigint() - began
    if (JSON.stringify([].concat(got.record)) !== JSON.stringify(record)) throw new Error(`another reply: ${JSON.stringify(got)}`)
    console.log(String(took / 1000n))
  }
}

main().then(() => process.exit(0), (e) => {
  console.error(e)
  process.exit(1)
})
