// Ends and removes all that belongs to one workspace once whoever started this process lets go of
// its standard input. It works from facts found on the machine (command lines, control groups,
// mounts), so that it is right whatever became of the test.
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  rmdirSync,
  statSync,
  unlinkSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const [, , folder] = process.argv
if (folder === undefined) throw new Error('usage: reaper.ts FOLDER')

for await (const chunk of process.stdin) void chunk
await reap(folder)

async function reap(folder: string): Promise<void> {
  const groups = controlGroups(basename(folder))
  const networks = namespacesOf(folder).map((name) => inode(`/run/netns/${name}`))
  await ended(() => namedBy(folder))
  await ended(() => networks.flatMap(insideOf))
  await ended(() => groups.flatMap(membersOf))
  for (const socket of shimSockets(folder)) quietly(() => unlinkSync(socket))
  for (const link of containerLogLinks(folder)) quietly(() => unlinkSync(link))
  // What was mounted last may lie on top of what was mounted before.
  for (const mount of mountsUnder(folder).toReversed()) run('umount', '-l', mount)
  for (const address of addressesOf(folder)) run('ip', 'addr', 'del', address, 'dev', 'lo')
  for (const namespace of namespacesOf(folder)) run('ip', 'netns', 'del', namespace)
  for (const group of groups) removeGroup(group)
  rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
  removeWhatIsEmpty()
}

/**
 * Kills what `find` finds until it finds nothing more: a process may have started another
 * meanwhile.
 */
async function ended(find: () => number[]): Promise<void> {
  for (let round = 0; round < 100; round += 1) {
    const left = find()
    if (left.length === 0) return
    for (const id of left) {
      // What it started is of its group, unless it is itself of another's.
      quietly(() => process.kill(-id, 'SIGKILL'))
      quietly(() => process.kill(id, 'SIGKILL'))
    }
    await sleep(20)
  }
}

/**
 * Processes whose command line names the folder or something in it; its name is drawn at random, so
 * they are its own.
 */
function namedBy(folder: string): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((id) => id > 1 && id !== process.pid && commandLine(id).includes(folder))
}

function inode(path: string): number | undefined {
  return quietly(() => statSync(path).ino)
}

/** Processes in a network namespace: those of a node may name nothing but its own files. */
function insideOf(namespace: number | undefined): number[] {
  if (namespace === undefined) return []
  return readdirSync('/proc')
    .map(Number)
    .filter((id) => id > 1 && inode(`/proc/${id}/ns/net`) === namespace)
}

function commandLine(id: number): string {
  return quietly(() => readFileSync(`/proc/${id}/cmdline`, 'utf8')) ?? ''
}

/** The group of this name in the one hierarchy of cgroup v2, or in each of cgroup v1's. */
function controlGroups(name: string): string[] {
  const root = '/sys/fs/cgroup'
  const hierarchies = existsSync(join(root, 'cgroup.controllers'))
    ? [root]
    : (quietly(() => readdirSync(root)) ?? []).map((each) => join(root, each))
  return hierarchies.map((each) => join(each, name)).filter((path) => existsSync(path))
}

function subgroups(group: string): string[] {
  const children = quietly(() => readdirSync(group, { withFileTypes: true })) ?? []
  return children.filter((each) => each.isDirectory()).map((each) => join(group, each.name))
}

function membersOf(group: string): number[] {
  const own = quietly(() => readFileSync(join(group, 'cgroup.procs'), 'utf8')) ?? ''
  return [
    ...own.split('\n').filter(Boolean).map(Number),
    ...subgroups(group).flatMap((each) => membersOf(each)),
  ]
}

function removeGroup(group: string): void {
  for (const each of subgroups(group)) removeGroup(each)
  quietly(() => rmdirSync(group))
}

/**
 * containerd's shims listen in a folder shared by all of them; each container's own folder says
 * where.
 */
function shimSockets(folder: string): string[] {
  const tasks = join(folder, 'containerd-state', 'io.containerd.runtime.v2.task', 'k8s.io')
  return (quietly(() => readdirSync(tasks)) ?? []).flatMap((id) => {
    const address = quietly(() => readFileSync(join(tasks, id, 'address'), 'utf8'))
    return address ? [address.replace(/^unix:\/\//, '')] : []
  })
}

/** The kubelet links each container's log from one fixed place. */
function containerLogLinks(folder: string): string[] {
  const links = '/var/log/containers'
  return (quietly(() => readdirSync(links)) ?? [])
    .map((name) => join(links, name))
    .filter((link) => quietly(() => readlinkSync(link))?.startsWith(folder))
}

function mountsUnder(folder: string): string[] {
  return readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .flatMap((line) => line.split(' ')[1] ?? [])
    .filter((mount) => mount.startsWith(`${folder}/`))
}

function addressesOf(folder: string): string[] {
  return notedIn(join(folder, 'addresses'))
}

function namespacesOf(folder: string): string[] {
  return notedIn(join(folder, 'namespaces'))
}

function notedIn(file: string): string[] {
  const noted = quietly(() => readFileSync(file, 'utf8')) ?? ''
  return noted.split('\n').filter(Boolean)
}

/** Fixed places of containerd and the kubelet: only what nobody uses is empty. */
function removeWhatIsEmpty(): void {
  const kubelets = readdirSync('/proc').filter((id) => /^\d+$/.test(id) && isKubelet(Number(id)))
  const plugins = '/var/lib/kubelet/device-plugins'
  if (kubelets.length === 0)
    for (const name of ['kubelet.sock', 'kubelet_internal_checkpoint'])
      quietly(() => unlinkSync(join(plugins, name)))
  for (const path of [
    plugins,
    '/var/lib/kubelet',
    '/var/log/containers',
    '/run/containerd/s',
    '/run/containerd',
  ])
    quietly(() => rmdirSync(path))
}

function isKubelet(id: number): boolean {
  return basename(commandLine(id).split('\0')[0] ?? '') === 'kubelet'
}

function run(command: string, ...args: string[]): void {
  quietly(() => execFileSync(command, args, { stdio: 'ignore' }))
}

/** What is gone already needs no removing. */
function quietly<Answer>(act: () => Answer): Answer | undefined {
  try {
    return act()
  } catch {
    return undefined
  }
}
