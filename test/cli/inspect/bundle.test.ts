import t from 'tap'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from '../../../src/cli/inspect/inspect.ts'
import { addCsiNode, podWith, startUp } from '../../kit/bootable.ts'
import { pods, secrets } from '../../kit/cloud.ts'
import { startCloud, startTestHub } from '../../kit/hub.ts'
import { startHubProcess } from '../../kit/hub-process.ts'
import { said, type Said } from '../../kit/terminal.ts'

t.setTimeout(300_000) // a process that starts takes its time on a busy machine

const run = (...argv: string[]): Promise<Said> =>
  said((terminal) => inspect.run(['bundle', ...argv], terminal))

/** The files of a bundle by name. */
function contentsOf(archive: string): ReadonlyMap<string, string> {
  const tar = (...args: string[]): string =>
    execFileSync('tar', args, { encoding: 'utf8', maxBuffer: 64 << 20 })
  const names = tar('-tzf', archive).trim().split('\n')
  return new Map(
    names.map((name) => [name.replace('nodehub-bundle/', ''), tar('-xzOf', archive, name)]),
  )
}

/** Rejects where a report is no JSON. */
const jsonNames = (contents: ReadonlyMap<string, string>): readonly string[] =>
  [...contents].flatMap(([name, content]) => {
    if (!name.endsWith('.json')) return []
    JSON.parse(content)
    return [name]
  })

const planted = {
  password: 'the-password-of-the-plant',
  joinToken: 'abcdef.0123456789abcdef',
  webToken: `eyJhbGciOiJSUzI1NiJ9.${Buffer.from('{"sub":"planted"}').toString('base64url')}.c2lnbmF0dXJl`,
  opaqueToken: 'an-opaque-token-of-somebody',
  inQuery: 'a-token-in-a-query',
}

void t.test('a bundle has every report during an outage, and no secret', async (t) => {
  const cloud = await startCloud(t, { tls: true })
  addCsiNode(cloud)
  const encoded = Buffer.from(planted.password).toString('base64')
  cloud.sandbox.create(secrets, {
    metadata: { name: 'password', namespace: 'default' },
    data: { password: encoded },
  })
  cloud.sandbox.create(pods, podWith('press', { secret: { secretName: 'password' } }))
  const rootDir = mkdtempSync(join(tmpdir(), 'nodehub-bundle-'))
  const config = join(rootDir, 'config.yaml')
  writeFileSync(
    config,
    `join-token: ${planted.joinToken}\ndiscovery-token-unsafe-skip-ca-verification: true\n`,
  )
  const hub = await startHubProcess(
    t,
    {
      upstreams: [cloud],
      flags: [`--config=${config}`, '--node-name=edge-1', '--log-level=trace'],
    },
    rootDir,
  )
  const kubelet = hub.as('kubelet')
  await startUp(kubelet)
  await kubelet.get('/api/v1/namespaces/default/secrets?fieldSelector=metadata.name%3Dpassword')
  await cloud.unplug()
  for (const token of [planted.webToken, planted.opaqueToken]) {
    const client = hub.as('stranger', { token })
    await client.get(`/api/v1/namespaces/default/configmaps/x?token=${planted.inQuery}`)
  }

  const state = join(rootDir, 'state')
  const file = join(rootDir, 'bundle.tar.gz')
  const flags = [
    `--serve-port=${hub.opsPort}`,
    `--token-file=${join(state, 'inspect.token')}`,
    `--file=${file}`,
  ]
  const { code, out, err } = await run(
    ...flags,
    '--',
    `--config=${config}`,
    `--server-addr=${cloud.url.replace('//', '//user:hunter22@')}`,
  )
  t.match({ code, err }, { code: 0, err: '' }, out)
  t.equal(statSync(file).mode & 0o777, 0o600)
  const contents = contentsOf(file)
  for (const name of [
    'versions.txt',
    'inspect/status.json',
    'inspect/config.txt',
    'inspect/cache.txt',
    'inspect/boot.json',
    'inspect/host-network.txt',
    'inspect/requests.txt',
    'log.json',
    'metrics.txt',
    'readyz.txt',
    'check-config.txt',
    'disk.txt',
  ])
    t.ok(contents.get(name), name)
  t.ok(jsonNames(contents).length > 8)
  t.match(contents.get('metrics.txt'), /^process_open_fds \d/m)
  t.match(contents.get('inspect/config.txt'), /^join-token +\[redacted\]/m)
  t.match(contents.get('disk.txt'), /0000000001\.log +100600 +\d/)
  t.match(contents.get('check-config.txt'), /exit code \d/)
  t.equal(contents.get('missing.txt'), 'nothing\n')

  const text = [...contents.values()].join('\n')
  const files = ['inspect.token', 'seal.key', 'token.key', 'pki/ca.key'].map((name) =>
    readFileSync(join(state, name)),
  )
  const nodeKey = readFileSync(join(rootDir, 'node.key'), 'utf8')
  const forms = files.flatMap((secret) => [
    secret.toString('latin1').trim(),
    secret.toString('base64'),
    secret.toString('hex'),
  ])
  const lines = nodeKey.split('\n').filter((line) => line.length > 30)
  for (const secret of [...Object.values(planted), encoded, 'hunter22', ...forms, ...lines])
    t.notOk(text.includes(secret), `a secret of ${secret.length} characters`)
  t.notMatch(text, /PRIVATE KEY/)

  const named = join(rootDir, 'without-flags.tar.gz')
  const plain = await run(...flags.slice(0, 2), `--file=${named}`)
  t.match(plain, { code: 0, err: '' }, 'the running hub has told its settings')
  t.match(contentsOf(named).get('check-config.txt'), /exit code \d/)

  const again = await run(...flags)
  t.equal(again.code, 2)
  t.match(again.err, /exists already: give another --file/)
})

void t.test('a bundle without a running hub names the missing reports', async (t) => {
  const folder = t.testdir()
  const file = join(folder, 'bundle.tar.gz')
  const { code, out } = await run('--serve-port=1', `--file=${file}`)
  t.equal(code, 1)
  t.match(out, /^missing: inspect\/status\.txt, .*ECONNREFUSED/m)
  t.match(contentsOf(file).get('missing.txt'), /^metrics\.txt: .*ECONNREFUSED/m)
  t.match(contentsOf(file).get('versions.txt'), /^nodehub /)

  const hub = await startTestHub(t, { upstreams: [await startCloud(t)] })
  const { rootDir } = hub.config
  await hub.stop()
  const other = join(folder, 'stopped.tar.gz')
  t.equal((await run(`--root-dir=${rootDir}`, `--file=${other}`)).code, 1)
  const contents = contentsOf(other)
  t.match(contents.get('inspect/status.txt'), / is stopped\.$/m)
  t.strictSame(contents.get('missing.txt')?.split('\n'), [
    'inspect/upstreams, inspect/watches, inspect/requests, inspect/filters, inspect/config: each of these reports is with the running hub only',
    'log.json: the log is with the running hub only',
    'readyz.txt: the hub is stopped',
    'metrics.txt: the hub is stopped',
    'check-config.txt: give the flags of nodehub start after --',
    '',
  ])
  t.strictSame(jsonNames(contents), [
    'inspect/status.json',
    'inspect/cache.json',
    'inspect/certificates.json',
    'inspect/boot.json',
    'inspect/host-network.json',
  ])
  t.ok(existsSync(join(rootDir, 'cache')))

  const watched = await run('--watch', `--file=${join(folder, 'third')}`)
  t.equal(watched.code, 2)
  t.match(watched.err, '--watch: bundle is done once')
})
