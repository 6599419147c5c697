import t from 'tap'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from '../../../src/cli/inspect/inspect.ts'
import { startCloud, startTestHub } from '../../kit/hub.ts'
import { requestAs } from '../../kit/other-user.ts'

async function run(...argv: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ['', '']
  const code = await inspect.run(['profile', ...argv], {
    out: (text) => (out += text),
    err: (text) => (err += text),
  })
  return { code, out, err }
}

const skip = process.getuid?.() === 0 ? false : 'profiles are for root'

void t.test('root gets a profile during an outage, in a file of its own', { skip }, async (t) => {
  const cloud = await startCloud(t)
  const hub = await startTestHub(t, { upstreams: [cloud] })
  await cloud.unplug()
  await hub.offline()
  const port = `--serve-port=${hub.hub.opsPort}`
  const folder = t.testdir()
  const file = join(folder, 'a.cpuprofile')
  const { code, out, err } = await run('cpu', '--seconds=1', `--file=${file}`, port)
  t.match({ code, err }, { code: 0, err: '' })
  t.match(out, /a\.cpuprofile has \d+ bytes/)
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.ok((JSON.parse(readFileSync(file, 'utf8')) as { nodes: object[] }).nodes.length > 0)

  const again = await run('cpu', '--seconds=1', `--file=${file}`, port)
  t.match(again, { code: 2, err: /EEXIST/ })
  // The seconds are how long an answer may take: on a busy machine a snapshot is long.
  const snapshot = await run('heap-snapshot', '--seconds=60', `--file=${join(folder, 'b')}`, port)
  t.match(snapshot.out, /It has all secrets that were in memory/)
  t.match(await run('memory', port), { code: 2, err: /KIND is one of cpu, heap, heap-snapshot/ })
  t.match(await run(port), { code: 2, err: /KIND is missing/ })
})

void t.test('the inspection token gets 403', { skip }, async (t) => {
  const hub = await startTestHub(t, { upstreams: [await startCloud(t)] })
  const token = readFileSync(hub.inspectTokenFile, 'utf8')
  const [answer] = await requestAs(65_534, [
    {
      url: `http://127.0.0.1:${hub.hub.opsPort}/debug/heap-snapshot`,
      headers: { Authorization: `Bearer ${token}` },
      method: 'POST',
    },
  ])
  t.match(answer, { status: 403, body: /for root of this node alone/ })
})
