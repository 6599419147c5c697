import t from 'tap'
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { mock } from 'node:test'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { turn } from '../../src/base/clock.ts'
import { readConfig, type UsableConfig } from '../../src/config/config.ts'
import { watchConfig, type ConfigChange } from '../../src/config/config-watcher.ts'
import { processSources } from '../../src/config/process.ts'
import { obtainedFiles } from '../../src/config/root-dir.ts'
import type { Teardown } from '../kit/wire/wire.ts'

const intervalMs = 5_000

/** A follower whose time the test makes pass. */
function following(t: Teardown, content: string, ...flags: readonly string[]) {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  const folder = mkdtempSync(join(tmpdir(), 'nodehub-config-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'config.yaml')
  writeFileSync(file, content)
  return { folder, file, ...follow(t, file, flags) }
}

function follow(t: Teardown, file: string, flags: readonly string[] = []) {
  const sources = {
    ...processSources([`--config=${file}`, ...flags]),
    env: { NODEHUB_BOOTSTRAP_MODE: 'anonymous' },
  }
  const first = readConfig(sources)
  if ('mistakes' in first) throw new Error(first.mistakes.join())
  const news: ConfigChange<UsableConfig>[] = []
  const unusable: (readonly string[])[] = []
  const follower = watchConfig(
    first,
    { sources, read: async (given) => readConfig(given), intervalMs },
    {
      onRead: (each) => news.push(each),
      onUnusable: (mistakes) => unusable.push(mistakes),
    },
  )
  t.teardown(() => follower[Symbol.dispose]())
  const pass = async (): Promise<void> => {
    mock.timers.tick(intervalMs)
    await turn()
  }
  return { follower, news, unusable, pass }
}

const namesIn = ({ changed, waiting }: ConfigChange<UsableConfig>) => ({ changed, waiting })

void t.test('what the file says comes after flags, whenever it says so', async (t) => {
  const { file, news, pass } = following(t, 'server-addr: https://a\n', '--lb-mode=priority')
  await pass()
  writeFileSync(file, 'server-addr: https://a\nlb-mode: round-robin\n')
  await pass()
  t.strictSame(news.map(namesIn), [{ changed: [], waiting: [] }])
  t.equal(news[0]?.read.config.lbMode, 'priority')
})

void t.test('a filter module that changed while the hub was starting is told', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  const sources = {
    ...processSources(['--server-addr=https://a', '--filter-module=/f.ts']),
    env: { NODEHUB_BOOTSTRAP_MODE: 'anonymous' },
  }
  const read = readConfig(sources)
  if ('mistakes' in read) throw new Error(read.mistakes.join())
  const revisions = ['as at the start', 'newer']
  for (const revision of revisions) {
    const news: ConfigChange<UsableConfig>[] = []
    using follower = watchConfig(
      { ...read, revision: 'as at the start' },
      { sources, read: async () => ({ ...read, revision }), intervalMs },
      { onRead: (each) => news.push(each), onUnusable: () => undefined },
    )
    t.ok(follower)
    mock.timers.tick(intervalMs)
    await turn()
    t.equal(news.length, revisions.indexOf(revision))
  }
})

void t.test('everything wrong with a file is told, once, and then what is right', async (t) => {
  const { file, news, unusable, pass } = following(t, 'server-addr: https://a\n')
  await pass()
  writeFileSync(file, 'server-addr: https://a\nlb-mod: x\nserve-port: y\n')
  await pass()
  await pass()
  t.match(unusable, [[/lb-mod is not known, did you mean lb-mode\?/, /serve-port: "y"/]])
  t.equal(unusable.length, 1)
  rmSync(file)
  await pass()
  t.match(unusable[1], [/--config: .*ENOENT|no such file/])
  writeFileSync(file, 'server-addr: https://a\n')
  await pass()
  t.strictSame(news.map(namesIn), [{ changed: [], waiting: [] }])
})

void t.test('what waits for the next start has no part in what is in force', async (t) => {
  const { file, news, pass } = following(t, 'server-addr: https://a\n')
  await pass()
  writeFileSync(
    file,
    'server-addr: https://a\nworking-mode: cloud\nhost-network-node: true\nlb-mode: priority\n',
  )
  await pass()
  t.strictSame(news.map(namesIn), [
    {
      changed: ['lb-mode'],
      waiting: ['working-mode', 'host-network-node'],
    },
  ])
  const [{ read }] = news as [ConfigChange<UsableConfig>]
  t.strictSame([read.config.filters.disabled.size, read.config.plainProxy], [0, 'served'])
})

void t.test('credentials in another root directory are none of a running hub', async (t) => {
  const { folder, file } = following(t, 'server-addr: https://a\n')
  const kubeconfig = join(folder, 'hub.conf')
  const { name, server } = { name: 'a', server: 'https://a' }
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      contexts: [{ name, context: { cluster: name, user: name } }],
      clusters: [{ name, cluster: { server } }],
      users: [{ name, user: { token: 'secret' } }],
    }),
  )
  const other = join(folder, 'other')
  const { folder: pki, pair } = obtainedFiles(other)
  mkdirSync(pki, { recursive: true })
  const fixture = (of: string) => readFileSync(`test/fixtures/credentials/${of}`, 'utf8')
  writeFileSync(pair, fixture('client.crt') + fixture('client.key'))
  writeFileSync(
    file,
    `server-addr: https://a\nroot-dir: ${join(folder, 'first')}\nkubeconfig: ${kubeconfig}\n`,
  )
  const { news, unusable, pass } = follow(t, file, ['--bootstrap-mode=token'])
  await pass()
  const moved = `server-addr: https://a\nroot-dir: ${other}\n`
  writeFileSync(file, moved)
  await pass()
  t.match(unusable, [[/^until the next start changes --root-dir: the hub has no credentials/]])
  t.equal(news.length, 0)
  writeFileSync(file, `${moved}kubeconfig: ${kubeconfig}\n`)
  await pass()
  t.strictSame(
    news.map(({ read }) => read.config.credentials),
    [{ kind: 'kubeconfig', file: kubeconfig }],
  )
})

void t.test('while it cannot be used, every file is followed that it names', async (t) => {
  const { folder, file, news, unusable, pass } = following(t, 'server-addr: https://a\n')
  await pass()
  const kubeconfig = join(folder, 'hub.conf')
  writeFileSync(file, `server-addr: https://a\nkubeconfig: ${kubeconfig}\n`)
  await pass()
  await pass()
  t.match(unusable, [[/hub\.conf cannot be read/]], 'once')
  const cluster = { server: 'https://a' }
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      contexts: [{ name: 'c', context: { cluster: 'k' } }],
      clusters: [{ name: 'k', cluster }],
    }),
  )
  await pass()
  t.strictSame(news.map(namesIn), [{ changed: ['kubeconfig'], waiting: [] }])
  writeFileSync(kubeconfig, '')
  await pass()
  t.equal(unusable.length, 1, 'its own followers see to it then')
})

void t.test('files of filters are followed as the file itself is', async (t) => {
  const { folder, file, news, pass } = following(t, 'server-addr: https://a\n')
  const [one, other] = [join(folder, 'one.mjs'), join(folder, 'other.mjs')]
  writeFileSync(one, '')
  writeFileSync(file, `server-addr: https://a\nfilter-module: ${one}\n`)
  await pass()
  t.equal(news.length, 1)
  await pass()
  t.equal(news.length, 1)
  writeFileSync(one, 'changed')
  await pass()
  t.equal(news.length, 2)
  writeFileSync(file, `server-addr: https://a\nfilter-module: ${other}\n`)
  await pass()
  writeFileSync(one, 'changed again')
  await pass()
  t.equal(news.length, 3, 'those alone that are named')
})

void t.test('a file is followed through links that are exchanged', async (t) => {
  // As a kubelet mounts a ConfigMap: file -> ..data/file, ..data -> a folder of its time.
  const { folder } = following(t, 'server-addr: https://a\n')
  const put = (time: string, content: string): void => {
    mkdirSync(join(folder, time))
    writeFileSync(join(folder, time, 'hub.yaml'), content)
    symlinkSync(time, join(folder, '..data_tmp'))
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
  }
  put('..1', 'server-addr: https://a\n')
  symlinkSync('..data/hub.yaml', join(folder, 'hub.yaml'))
  const { news, pass } = follow(t, join(folder, 'hub.yaml'))
  await pass()
  put('..2', 'server-addr: https://b\n')
  await pass()
  t.strictSame(news.map(namesIn), [{ changed: ['server-addr'], waiting: [] }])
})

void t.test('it can be read again without having changed', async (t) => {
  const { news, follower } = following(t, 'server-addr: https://a\n')
  follower.read()
  await turn()
  t.strictSame(news.map(namesIn), [{ changed: [], waiting: [] }])
  t.strictSame(news[0]?.notes, [], 'what was said at the start is not said again')
})
