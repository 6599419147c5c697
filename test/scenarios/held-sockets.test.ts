import t, { type Test } from 'tap'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:http2'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pause } from '../../src/base/clock.ts'
import { Client, nameOf } from '../kit/client.ts'
import { plainNode } from '../kit/cluster/plain-node.ts'
import { podsOfNode, type CloudServer } from '../kit/cloud.ts'
import { hubFlags } from '../kit/hub-config.ts'
import { nodehubProgram } from '../kit/hub-programs.ts'
import { signal } from '../kit/hub-process.ts'
import { startCloud } from '../kit/hub.ts'
import { openStream } from '../kit/http2.ts'
import { listeningFd } from '../kit/listening-fd.ts'
import { inTime, until } from '../kit/until.ts'

t.setTimeout(300_000) // a process that starts takes its time on a busy machine

const aPod = '/api/v1/namespaces/default/pods/a'

/**
 * Often enough to meet a moment in which a port is nobody's, and seldom enough to leave the
 * processor to the process that starts.
 */
const oftenMs = 3

/** As systemd does: it holds the sockets, and starts the hub again whenever that has ended. */
const holding = `while :; do sh -c 'LISTEN_PID=$$ exec "$@"' hub "$@"; [ -e "$STOPPED" ] && exit; done`

interface HeldHub {
  readonly proxyPort: number
  readonly securePort: number
  readonly rootDir: string
  readonly kubelet: Client
  /** Ends the hub as `systemctl restart` does; resolves when the next process is ready. */
  restart(): Promise<void>
}

/** A hub whose sockets outlive its process. */
async function startHeldHub(t: Test, cloud: CloudServer): Promise<HeldHub> {
  const rootDir = mkdtempSync(join(tmpdir(), 'nodehub-held-'))
  const servers = [createServer(), createServer(), createServer()]
  for (const server of servers) await once(server.listen(0, '127.0.0.1'), 'listening')
  const [proxyPort = 0, securePort = 0, opsPort = 0] = servers.map(
    (server) => (server.address() as AddressInfo).port,
  )
  const ports = [`--proxy-port=${proxyPort}`, `--proxy-secure-port=${securePort}`]
  const flags = [...ports, `--serve-port=${opsPort}`, ...hubFlags(rootDir, { upstreams: [cloud] })]
  const stopped = join(rootDir, 'stopped')
  const holder = spawn(
    'sh',
    ['-c', holding, 'hold', ...plainNode(nodehubProgram, 'start', ...flags).flat()],
    {
      env: {
        ...process.env,
        STOPPED: stopped,
        LISTEN_FDS: '3',
      },
      stdio: ['ignore', 'ignore', 'pipe', ...servers.map(listeningFd)],
    },
  )
  for (const server of servers) server.close()
  let log = ''
  holder.stderr?.on('data', (chunk: Buffer) => (log += chunk.toString()))
  const pid = (): number =>
    Number(readFileSync(`/proc/${holder.pid}/task/${holder.pid}/children`, 'utf8'))
  t.teardown(async () => {
    writeFileSync(stopped, '')
    signal(pid(), 'SIGKILL')
    await once(holder, 'exit')
    rmSync(rootDir, { recursive: true, force: true })
  })
  const ops = new Client({ url: `http://127.0.0.1:${opsPort}`, component: 'prober' })
  const ready = (): Promise<unknown> =>
    until('the hub to be ready', async () => (await ops.get('/readyz')).status === 200, {
      describe: () => log,
    })
  await ready()
  return {
    proxyPort,
    securePort,
    rootDir,
    kubelet: new Client({ url: `http://127.0.0.1:${proxyPort}`, component: 'kubelet' }),
    restart: async () => {
      const before = pid()
      signal(before, 'SIGTERM')
      await until('the next process', () => ![0, before].includes(pid()))
      await ready()
    },
  }
}

/**
 * Gets an object, again and again, until told that it is enough; resolves to every status that was
 * answered.
 */
function asking(client: Client): { enough(): Promise<readonly number[]> } {
  let over = false
  const statuses: number[] = []
  const done = (async () => {
    while (!over) {
      statuses.push((await client.get(aPod)).status)
      await pause(oftenMs)
    }
    return statuses
  })()
  return {
    enough: () => {
      over = true
      return done
    },
  }
}

type Listed = Pick<Awaited<ReturnType<Client['list']>>, 'names' | 'resourceVersion'>

/**
 * Watches as client-go does: from the last version seen, again when a watch has ended, and lists
 * where that version is no longer known; until `count` pods were seen to come.
 */
async function watching(client: Client, first: Listed, count: number): Promise<readonly string[]> {
  const seen: string[] = []
  const reading = readInto(seen, client, first, count)
  // Processes start meanwhile, one after the other.
  await inTime(`${count} events`, reading, { seconds: 180, describe: () => seen })
  return seen
}

async function readInto(
  seen: string[],
  client: Client,
  first: Listed,
  count: number,
): Promise<void> {
  let { names, resourceVersion } = first
  const known = new Set(names)
  while (seen.length < count) {
    const watch = await client.watch(podsOfNode, { resourceVersion })
    // By a hub that stops, with Retry-After, at which client-go asks again.
    if (watch.status === 503) {
      watch.hangUp()
      await pause(oftenMs)
      continue
    }
    if (watch.status !== 200) throw new Error(`a watch was answered ${watch.status}`)
    for (let event = await watch.next(); event; event = await watch.next()) {
      if (event.type === 'ERROR') {
        ;({ names, resourceVersion } = await client.list(podsOfNode))
        seen.push(...names.filter((name) => !known.has(name)))
        for (const name of names) known.add(name)
        break
      }
      resourceVersion = (event.object['metadata'] as Record<string, string>)['resourceVersion']!
      seen.push(nameOf(event.object))
      known.add(nameOf(event.object))
      if (seen.length >= count) break
    }
    watch.hangUp()
  }
}

void t.test(
  'where systemd holds the sockets, a restart refuses no request and repeats no event',
  async (t) => {
    const cloud = await startCloud(t)
    cloud.addPods('a')
    const held = await startHeldHub(t, cloud)
    const { kubelet } = held
    t.equal((await kubelet.get(aPod)).status, 200)
    const asked = [asking(kubelet), asking(kubelet)]
    const rounds = ['1', '2']
    const names = rounds.flatMap((round) => [`before-${round}`, `after-${round}`])
    const watched = watching(kubelet, await kubelet.list(podsOfNode), names.length)
    for (const round of rounds) {
      cloud.addPods(`before-${round}`)
      await held.restart()
      cloud.addPods(`after-${round}`)
    }
    t.strictSame((await watched).toSorted(), names.map((name) => `default/${name}`).toSorted())
    const statuses = (await Promise.all(asked.map((each) => each.enough()))).flat()
    t.ok(statuses.length > asked.length)
    t.ok(statuses.every((status) => status === 200))
  },
)

/** A client's way to the TLS proxy of a hub, as the node. */
function node(cloud: CloudServer, hub: HeldHub) {
  const { certificate, key } = cloud.node
  return { ca: readFileSync(join(hub.rootDir, 'state/pki/ca.crt')), cert: certificate, key }
}

void t.test('an HTTP/2 session gets GOAWAY, and its watches end and come back', async (t) => {
  const cloud = await startCloud(t, { tls: true })
  cloud.addPods('a')
  const hub = await startHeldHub(t, cloud)
  const url = `https://127.0.0.1:${hub.securePort}`
  const open = () => {
    const session = connect(url, node(cloud, hub))
    t.teardown(() => session.destroy())
    return session
  }
  const watch = (from: string) => ({
    ':path': `${podsOfNode}&watch=true&resourceVersion=${from}`,
    'user-agent': 'kubelet/v1.35.0',
    accept: 'application/json',
  })
  const { resourceVersion } = await hub.kubelet.list(podsOfNode)
  const before = open()
  const goneAway = once(before, 'goaway')
  const ended = openStream(before, watch(resourceVersion))
  t.match(await ended.head(), { ':status': 200 })
  const restarted = hub.restart()
  const [code] = (await goneAway) as [number]
  t.equal(code, 0, 'without a complaint')
  t.match(await ended.whole(), { status: 200, body: '' }, 'a clean end')
  const again = await hub.kubelet.list(podsOfNode)
  const stream = open().request(watch(again.resourceVersion))
  await once(stream, 'response')
  cloud.addPods('b')
  const [event] = (await once(stream, 'data')) as [Buffer]
  t.match(JSON.parse(String(event)), { type: 'ADDED', object: { metadata: { name: 'b' } } })
  await restarted
})
