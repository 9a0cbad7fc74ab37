// A server of stacks.wsdl with node-soap: node_server.js WSDL. Prints its port, and ends with its standard input.
const fs = require('fs')
const http = require('http')
const soap = require('soap')

const server = http.createServer((_, response) => response.writeHead(404).end())
server.listen(0, '127.0.0.1', () => {
  const port = { records: (request) => ({ record: [].concat(request.record) }), note: () => undefined }
  soap.listen(server, '/', { stacks: { stacks: port } }, fs.readFileSync(process.argv[2], 'utf8'))
  console.log(server.address().port)
})
process.stdin.resume().on('end', () => process.exit(0))
