/**
 * Links to other places where the hub, or a join of an image, is about to write or read; special
 * files there; and files of other users that are open to others.
 */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { createServer } from 'node:net'
import { basename, dirname, join as joinPath, relative } from 'node:path'
import t, { type Test } from 'tap'
import { storedKey } from '../../src/base/stored-key.ts'
import { writeDurably, writeDurablySync } from '../../src/base/durable-file.ts'
import { storedEntries } from '../../src/base/state-file.ts'
import { storedAuthority } from '../../src/certificates/stored-authority.ts'
import { join } from '../../src/cli/join-command.ts'
import { leave } from '../../src/cli/leave-command.ts'
import type { Command } from '../../src/cli/command.ts'
import { NodeFiles } from '../../src/node/join/node-files.ts'
import { nodeRoot, treeOf } from '../node/join/node-root.ts'

async function run(command: Command, argv: readonly string[]): Promise<string> {
  const said: string[] = []
  const say = (text: string): void => void said.push(text)
  await command.run(argv, { out: say, err: say })
  return said.join('')
}

const joining = (root: string): Promise<string> =>
  run(join, ['--nodepool-name=hn', '--host-network-pool', `--root=${root}`, '--image=hub:1'])

const leaving = (root: string): Promise<string> => run(leave, [`--root=${root}`])

/** An image of a node, and beside it what no join of it may touch. */
function imageBeside(t: Test): { readonly root: string; readonly outside: string } {
  const folder = t.testdir({ outside: { victim: 'precious' }, image: {} })
  fs.chmodSync(joinPath(folder, 'outside/victim'), 0o644)
  return { root: nodeRoot(joinPath(folder, 'image')), outside: joinPath(folder, 'outside') }
}

function plant(path: string, target: string): void {
  fs.rmSync(path, { force: true, recursive: true })
  fs.mkdirSync(dirname(path), { recursive: true })
  fs.symlinkSync(target, path)
}

/**
 * The files that join and leave write, the temporary files beside them, and the authority that join
 * creates.
 */
const written = [
  '/etc/kubernetes/manifests/nodehub.yaml',
  '/etc/kubernetes/kubelet-nodehub.conf',
  '/etc/cni/net.d/0-loopback.conf',
  '/srv/kubelet/flags.env',
  '/var/lib/nodehub/joined/record.json',
]
const lock = ['/run/nodehub/change.lock']
const pki = ['/var/lib/nodehub/pki/ca.key', '/var/lib/nodehub/pki/ca.crt']
const files = [
  written,
  [
    ...written.map((path) => `${dirname(path)}/.${basename(path)}.nodehub`),
    ...pki.map((path) => `${path}.new`),
  ],
  pki,
  ...lock.map((path) => [path]),
]

const folders = [
  '/run',
  '/run/nodehub',
  '/etc/cni',
  '/etc/cni/net.d',
  '/etc/kubernetes/manifests',
  '/srv/kubelet',
  '/var/lib/nodehub',
  '/var/lib/nodehub/joined',
  '/var/lib/nodehub/joined/originals',
  '/var/lib/nodehub/pki',
]

/**
 * How a link leads to a path outside: by an absolute path, by a relative path, and by another link
 * of the image.
 */
const ways: Readonly<Record<string, (link: string, target: string, root: string) => string>> = {
  absolute: (_link, target) => target,
  'by ..': (link, target) => relative(dirname(link), target),
  'by .. beyond the root': (_link, target) => `${'../'.repeat(40)}${target.slice(1)}`,
  'by another link': (_link, target, root) => {
    plant(joinPath(root, 'srv/hop'), dirname(target))
    return `/srv/hop/${basename(target)}`
  },
}

for (const [way, targetOf] of Object.entries(ways)) {
  void t.test(`a join writes nothing through links of its image (${way})`, async (t) => {
    for (const places of files) {
      for (const name of ['victim', 'missing']) {
        const { root, outside } = imageBeside(t)
        const before = treeOf(outside)
        const links = places.map((place) => joinPath(root, place))
        for (const link of links) plant(link, targetOf(link, joinPath(outside, name), root))
        await joining(root)
        t.strictSame(treeOf(outside), before, `${places.join(', ')} -> ${name}`)
      }
    }
  })

  void t.test(`a leave writes and removes nothing through them (${way})`, async (t) => {
    for (const places of files) {
      const { root, outside } = imageBeside(t)
      await joining(root)
      const before = treeOf(outside)
      const links = places.map((place) => joinPath(root, place))
      for (const link of links) plant(link, targetOf(link, joinPath(outside, 'victim'), root))
      await leaving(root)
      t.strictSame(treeOf(outside), before, places.join(', '))
    }
  })
}

void t.test('no folder of an image leads a join or a leave out of it', async (t) => {
  for (const [way, targetOf] of Object.entries(ways).slice(0, 1)) {
    for (const place of folders) {
      const { root, outside } = imageBeside(t)
      const link = joinPath(root, place)
      const empty = treeOf(outside)
      plant(link, targetOf(link, outside, root))
      await joining(root)
      t.strictSame(treeOf(outside), empty, `join, ${place} ${way}`)
      fs.rmSync(root, { recursive: true })
      nodeRoot(root)
      await joining(root)
      // A copy of what the hub would remove: it is found if the hub follows the link.
      fs.cpSync(link, outside, { recursive: true })
      const before = treeOf(outside)
      plant(link, targetOf(link, outside, root))
      await leaving(root)
      t.strictSame(treeOf(outside), before, `leave, ${place} ${way}`)
    }
  }
})

void t.test('a join overwrites what a broken join left, even a link', async (t) => {
  const { root, outside } = imageBeside(t)
  plant(
    joinPath(root, '/etc/kubernetes/manifests/.nodehub.yaml.nodehub'),
    joinPath(outside, 'victim'),
  )
  await joining(root)
  const manifest = joinPath(root, '/etc/kubernetes/manifests/nodehub.yaml')
  t.ok(fs.lstatSync(manifest).isFile())
  t.match(fs.readFileSync(manifest, 'utf8'), 'hub:1')
  t.strictSame(fs.readdirSync(dirname(manifest)).toSorted(), ['nodehub.yaml', 'other.yaml'])
})

void t.test('a path that is no file is refused before it is opened', async (t) => {
  const { root } = imageBeside(t)
  const image = new NodeFiles(root)
  const place = joinPath(root, 'var/lib/nodehub/seal.key')
  fs.mkdirSync(dirname(place), { recursive: true })
  const plants = {
    pipe: () => void execFileSync('mkfifo', [place]),
    // Opening one fails with ENXIO for every user.
    socket: () => {
      // The path itself may be too long for one.
      const folder = fs.openSync(dirname(place), 'r')
      const server = createServer().listen(`/proc/self/fd/${folder}/${basename(place)}`)
      t.teardown(() => server.close())
      t.teardown(() => fs.closeSync(folder))
      return once(server, 'listening')
    },
    folder: () => fs.mkdirSync(place),
  }
  for (const [what, make] of Object.entries(plants)) {
    await make()
    t.throws(() => image.read('/var/lib/nodehub/seal.key'), /seal\.key is no file/, what)
    t.throws(() => storedKey(place), /seal\.key is no file/, `the hub: ${what}`)
    fs.rmSync(place, { recursive: true })
  }
})

void t.test('a join waits for no pipe of its image', async (t) => {
  for (const place of [...written, ...pki]) {
    const { root } = imageBeside(t)
    const path = joinPath(root, place)
    fs.rmSync(path, { force: true })
    fs.mkdirSync(dirname(path), { recursive: true })
    execFileSync('mkfifo', [path])
    t.match(await joining(root), `${basename(place)} is no file`, place)
  }
})

/** What belongs to another user, where this process may give it away. */
const another = process.getuid?.() === 0 ? 4711 : undefined

const ownerOf = (path: string): readonly number[] => {
  const { uid, gid } = fs.lstatSync(path)
  return [uid, gid]
}

void t.test('a join closes its files to others, whatever mode they had', async (t) => {
  const { root } = imageBeside(t)
  const secrets = [
    '/etc/kubernetes/manifests/nodehub.yaml',
    '/etc/kubernetes/kubelet-nodehub.conf',
    '/var/lib/nodehub/joined/record.json',
    '/var/lib/nodehub/pki/ca.key',
  ]
  const opened = [
    ...secrets,
    '/etc/cni/net.d/0-loopback.conf',
    '/srv/kubelet/flags.env',
    '/var/lib/nodehub/joined',
    '/var/lib/nodehub/joined/originals',
    '/var/lib/nodehub/pki',
    '/var/lib/nodehub',
  ]
  const open = (): void => {
    for (const place of opened) {
      fs.chmodSync(joinPath(root, place), 0o6777)
      if (another !== undefined) fs.chownSync(joinPath(root, place), another, another)
    }
  }
  const closed = (what: string): void => {
    const own = [process.getuid?.(), process.getgid?.()]
    for (const place of opened) {
      const path = joinPath(root, place)
      const mode = fs.statSync(path).mode & 0o7777
      t.equal(mode & 0o7022, 0, `${what}: no other user may write ${place}`)
      if (secrets.includes(place)) t.equal(mode, 0o600, `${what}: ${place}`)
      if (place !== '/srv/kubelet/flags.env') t.strictSame(ownerOf(path), own, `${what}: ${place}`)
      else t.equal(ownerOf(path)[0], own[0], `${what}: the reading group of ${place} stays`)
    }
  }
  await joining(root)
  const texts = new Map(
    opened
      .filter((place) => fs.statSync(joinPath(root, place)).isFile())
      .map((place) => [place, fs.readFileSync(joinPath(root, place))]),
  )
  open()
  await joining(root)
  closed('with the same content')
  await leaving(root)
  for (const [place, text] of texts) {
    fs.mkdirSync(dirname(joinPath(root, place)), { recursive: true })
    if (place.endsWith('record.json')) continue
    fs.writeFileSync(
      joinPath(root, place),
      place.endsWith('.key') ? text : 'KUBELET_KUBEADM_ARGS=""\n',
    )
  }
  fs.mkdirSync(joinPath(root, '/var/lib/nodehub/joined/originals'), { recursive: true })
  fs.writeFileSync(joinPath(root, '/var/lib/nodehub/joined/record.json'), '')
  open()
  fs.rmSync(joinPath(root, '/var/lib/nodehub/joined/record.json'))
  const before = treeOf(root, '/var/lib/nodehub')
  await joining(root)
  closed('with another content')
  await leaving(root)
  t.strictSame(treeOf(root, '/var/lib/nodehub'), before, 'leave gives back rights, too')
})

void t.test('reading an image stays in it', (t) => {
  const { root, outside } = imageBeside(t)
  const image = new NodeFiles(root)
  for (const [way, targetOf] of Object.entries(ways)) {
    const link = joinPath(root, 'etc/read')
    plant(link, targetOf(link, joinPath(outside, 'victim'), root))
    t.equal(image.read('/etc/read'), undefined, way)
    plant(link, targetOf(link, outside, root))
    t.equal(image.read('/etc/read/victim'), undefined, way)
    t.strictSame(image.names('/etc/read'), [], way)
  }
  plant(joinPath(root, 'etc/round'), '/etc/round')
  t.throws(() => image.read('/etc/round'), /too many links/)
  t.throws(() => image.read('/etc/kubernetes/manifests'), /is no file/)
  // What stays inside is found, as a node finds it.
  plant(joinPath(root, 'etc/inside'), '/../srv/./kubelet/../kubelet/flags.env')
  t.match(image.text('/etc/inside'), 'network-plugin')
  t.end()
})

void t.test(
  'the hub reads and closes no file of another through a link of its folder',
  async (t) => {
    const folder = t.testdir({ outside: {}, own: {} })
    const victim = joinPath(folder, 'outside/victim')
    const own = joinPath(folder, 'own')
    fs.writeFileSync(victim, Buffer.alloc(32, 7), { mode: 0o644 })
    const unharmed = (what: string): void => {
      t.strictSame(
        treeOf(joinPath(folder, 'outside')),
        { victim: `644 ${'\x07'.repeat(32)}` },
        what,
      )
    }
    plant(joinPath(own, 'seal.key'), victim)
    t.throws(() => storedKey(joinPath(own, 'seal.key')), /is a link, which the hub does not follow/)
    unharmed('a key')
    plant(joinPath(own, 'seal.key'), joinPath(folder, 'outside/missing'))
    t.throws(() => storedKey(joinPath(own, 'seal.key')), /is a link/)
    unharmed('a key that is not there')
    plant(joinPath(own, 'pki/ca.crt'), victim)
    await t.rejects(
      storedAuthority(joinPath(own, 'pki'), () => undefined),
      /is a link/,
    )
    unharmed('an authority')
    fs.writeFileSync(joinPath(folder, 'outside/victim'), '["a"]')
    plant(joinPath(own, 'proofs.json'), victim)
    const isText = (entry: unknown): entry is string => typeof entry === 'string'
    t.strictSame(storedEntries(joinPath(own, 'proofs.json'), isText), [])
  },
)

void t.test('a file is written in the place of a link, and beside one', async (t) => {
  const folder = t.testdir({ outside: { victim: 'precious' }, own: {} })
  const victim = joinPath(folder, 'outside/victim')
  fs.chmodSync(victim, 0o644)
  const file = joinPath(folder, 'own/state.json')
  const writes = [writeDurably, async (path: string, text: string) => writeDurablySync(path, text)]
  for (const write of writes) {
    for (const planted of [file, `${file}.new`]) {
      for (const target of [victim, joinPath(folder, 'outside/missing')]) {
        plant(planted, target)
        await write(file, 'state')
        t.strictSame(treeOf(joinPath(folder, 'own')), { 'state.json': '600 state' })
        t.strictSame(treeOf(joinPath(folder, 'outside')), { victim: '644 precious' })
      }
    }
  }
})
