import t from 'tap'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { plainNode } from '../kit/cluster/plain-node.ts'

t.setTimeout(120_000) // a process that starts takes its time on a busy machine

void t.test('the demonstration takes free ports where any of its own is taken', async (t) => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  const { port } = other.address() as AddressInfo
  const demo = spawn(
    ...plainNode(
      'src/main.ts',
      'demo',
      '--proxy-port=0',
      '--serve-port=0',
      `--proxy-secure-port=${port}`,
    ),
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  t.teardown(() => demo.kill())
  let ready = ''
  for await (const line of createInterface({ input: demo.stdout })) {
    ready = /http:\/\/\S+\/readyz/.exec(line)?.[0] ?? ready
    if (line.includes('q  quit')) break
  }
  t.equal((await fetch(ready)).status, 200)
  demo.kill()
  t.strictSame(await once(demo, 'exit'), [0, null])
})
