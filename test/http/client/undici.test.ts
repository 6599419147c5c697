import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { plainNode } from '../../kit/cluster/plain-node.ts'
import { rootFolder } from '../../kit/root-folder.ts'

const parts = pathToFileURL(
  join(import.meta.dirname, '..', '..', '..', 'src', 'http', 'client', 'undici.ts'),
)

void t.test('requests work in a process that never loads undici as a whole', async (t) => {
  const server = createServer((_request, response) => response.end('yes')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const program = join(rootFolder(t), 'program.mjs')
  writeFileSync(
    program,
    `import { createRequire } from 'node:module'
     import { undici } from ${JSON.stringify(parts.href)}
     const said = (make) => new Promise((resolve, reject) => {
       const asked = make('http://127.0.0.1:${port}', { connect: undici.buildConnector({}) })
       let body = ''
       asked.dispatch({ method: 'GET', path: '/' }, {
         onRequestStart() {},
         onResponseStart() {},
         onResponseData(_controller, chunk) { body += chunk },
         onResponseEnd() { asked.destroy().then(() => resolve(body)) },
         onResponseError(_controller, cause) { reject(cause) },
       })
     })
     const answers = [
       await said((...args) => new undici.Pool(...args)),
       await said((...args) => new undici.Client(...args)),
     ]
     const loaded = Object.keys(createRequire(import.meta.url).cache)
     console.log(JSON.stringify({ answers, web: loaded.filter((file) => file.includes('/lib/web/fetch/index')) }))`,
  )
  const [command, args] = plainNode(program)
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const printed = await text(child.stdout)
  t.strictSame(JSON.parse(printed), { answers: ['yes', 'yes'], web: [] })
})
