import t from 'tap'
import { readFileSync, statSync } from 'node:fs'
import { addCsiNode, kubeletOf, podWith, startUp } from '../kit/bootable.ts'
import { pods } from '../kit/cloud.ts'
import { onlineNode, type TestHub } from '../kit/hub.ts'
import { requestAs } from '../kit/other-user.ts'
import type { Teardown } from '../kit/wire/wire.ts'

t.setTimeout(300_000) // a process that starts takes its time on a busy machine

const skip =
  process.platform !== 'linux' || process.getuid?.() !== 0 ? 'only root can be two users' : false

const root = 0
const another = 65_534

/** A hub of a node with a pod that needs a Secret with a revealing name. */
async function startNode(t: Teardown): Promise<TestHub> {
  const { cloud, hub } = await onlineNode(t)
  addCsiNode(cloud)
  cloud.sandbox.create(pods, podWith('press', { secret: { secretName: 'plans-of-the-plant' } }))
  await startUp(kubeletOf(hub))
  return hub
}

const reports = (
  { hub }: TestHub,
  headers: Readonly<Record<string, string>> = {},
): { readonly url: string; readonly headers: Readonly<Record<string, string>> }[] =>
  ['boot', 'host-network', 'status', 'requests'].map((name) => ({
    url: `http://127.0.0.1:${hub.opsPort}/inspect/${name}`,
    headers,
  }))

const authorization = (credential: string) => ({ Authorization: credential })

void t.test('inspections are for root alone, whatever else others show', { skip }, async (t) => {
  const hub = await startNode(t)
  const wrong = ['Bearer guessed', 'Bearer ', `Bearer ${'A'.repeat(43)}`, 'Basic cm9vdDpyb290']
  const live = { url: `http://127.0.0.1:${hub.hub.opsPort}/livez`, headers: {} }
  const answers = await requestAs(another, [
    live,
    ...reports(hub),
    ...wrong.flatMap((credential) => reports(hub, authorization(credential))),
  ])
  t.strictSame(
    answers.map(({ status }) => status),
    [200, 403, 403, 403, 403, ...wrong.flatMap(() => [401, 401, 401, 401])],
  )
  for (const { body } of answers.slice(1)) t.match(body, /^inspections are for root/)
  const [boot, network, status] = await requestAs(root, reports(hub))
  t.match(boot, { status: 200, body: /"press".*"plans-of-the-plant"/ })
  t.equal(network?.status, 200)
  t.equal(status?.status, 200)
})

void t.test('only root can read the inspect token, until it hands it out', { skip }, async (t) => {
  const hub = await startNode(t)
  t.equal(statSync(hub.inspectTokenFile).mode & 0o777, 0o600)
  const token = readFileSync(hub.inspectTokenFile, 'utf8')
  const other = await startNode(t)
  const answers = await requestAs(another, [
    ...reports(hub, authorization(`Bearer ${token}`)),
    ...reports(other, authorization(`Bearer ${token}`)),
  ])
  t.strictSame(
    answers.map(({ status }) => status),
    [200, 200, 200, 200, 401, 401, 401, 401],
    'another hub has another one',
  )
  await hub.restart()
  t.equal(readFileSync(hub.inspectTokenFile, 'utf8'), token, 'it outlives the hub')
  t.notOk(hub.lines.some((line) => line.includes(token)))
})
