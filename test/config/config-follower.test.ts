import t from 'tap'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { mock } from 'node:test'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../../src/config/config.ts'
import { followConfig, type ConfigNews } from '../../src/config/config-follower.ts'
import { processSources } from '../../src/config/process.ts'
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
  const sources = { ...processSources([`--config=${file}`, ...flags]), env: {} }
  const first = readConfig(sources)
  if ('mistakes' in first) throw new Error(first.mistakes.join())
  const news: ConfigNews[] = []
  const unusable: (readonly string[])[] = []
  const follower = followConfig(sources, first, intervalMs, {
    onRead: (each) => news.push(each),
    onUnusable: (mistakes) => unusable.push(mistakes),
  })
  t.teardown(() => follower[Symbol.dispose]())
  return { follower, news, unusable, pass: () => mock.timers.tick(intervalMs) }
}

const namesIn = ({ changed, pending }: ConfigNews) => ({ changed, pending })

void t.test('a file that changes is read again, and one that does not is not', async (t) => {
  const { file, news, unusable, pass } = following(t, 'server-addr: https://a\n')
  pass()
  pass()
  t.strictSame([news.length, unusable.length], [0, 0])
  writeFileSync(file, 'server-addr: https://a,https://b\nlog-level: debug\n')
  pass()
  pass()
  t.strictSame(news.map(namesIn), [{ changed: ['server-addr', 'log-level'], pending: [] }])
  t.equal(news[0]?.config.serverAddresses.length, 2)
})

void t.test('what the file says comes after flags, whenever it says so', async (t) => {
  const { file, news, pass } = following(t, 'server-addr: https://a\n', '--lb-mode=priority')
  pass()
  writeFileSync(file, 'server-addr: https://a\nlb-mode: round-robin\n')
  pass()
  t.strictSame(news.map(namesIn), [{ changed: [], pending: [] }])
  t.equal(news[0]?.config.lbMode, 'priority')
})

void t.test('what waits for the next start is told once', async (t) => {
  const { file, news, pass } = following(t, 'server-addr: https://a\n')
  pass()
  writeFileSync(file, 'server-addr: https://a\nserve-port: 7\n')
  pass()
  writeFileSync(file, 'server-addr: https://a\nserve-port: 7\nmax-requests-in-flight: 9\n')
  pass()
  writeFileSync(file, 'server-addr: https://a\n')
  pass()
  t.strictSame(news.map(namesIn), [
    { changed: [], pending: ['serve-port'] },
    { changed: ['max-requests-in-flight'], pending: [] },
    { changed: ['max-requests-in-flight'], pending: [] },
  ])
})

void t.test('everything wrong with a file is told, once, and then what is right', async (t) => {
  const { file, news, unusable, pass } = following(t, 'server-addr: https://a\n')
  pass()
  writeFileSync(file, 'server-addr: https://a\nlb-mod: x\nserve-port: y\n')
  pass()
  pass()
  t.match(unusable, [[/lb-mod is not known, did you mean lb-mode\?/, /serve-port: "y"/]])
  t.equal(unusable.length, 1)
  rmSync(file)
  pass()
  t.match(unusable[1], [/--config: .*ENOENT|no such file/])
  writeFileSync(file, 'server-addr: https://a\n')
  pass()
  t.strictSame(news.map(namesIn), [{ changed: [], pending: [] }])
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
  pass()
  put('..2', 'server-addr: https://b\n')
  pass()
  t.strictSame(news.map(namesIn), [{ changed: ['server-addr'], pending: [] }])
})

void t.test('it can be read again without having changed', async (t) => {
  const { news, follower } = following(t, 'server-addr: https://a\n')
  follower.read()
  t.strictSame(news.map(namesIn), [{ changed: [], pending: [] }])
  t.strictSame(news[0]?.notes, [], 'what was said at the start is not said again')
})
