import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { LockTaken } from '../../../src/base/file-lock.ts'
import { adopt } from '../../../src/cli/adopt-command.ts'
import type { Command } from '../../../src/cli/command.ts'
import { join as joinCommand } from '../../../src/cli/join-command.ts'
import { leave } from '../../../src/cli/leave-command.ts'
import { NodeFiles } from '../../../src/node/join/node-files.ts'
import { lockNode, lockNodeOnceFree } from '../../../src/node/join/node-lock.ts'
import { plainNode } from '../../kit/cluster/plain-node.ts'
import { yurthubRoot } from '../adopt/yurthub-root.ts'
import { treeOf } from './node-root.ts'
import { rootFolder } from '../../kit/root-folder.ts'
import { said } from '../../kit/terminal.ts'

const script = join(import.meta.dirname, 'lock-holder.ts')

/** Another process that has locked this root; in namespaces of its own it is mounted elsewhere. */
async function holder(t: Test, root: string, { isContainer = false } = {}): Promise<ChildProcess> {
  const host = `${root}-as-mounted`
  if (isContainer) mkdirSync(host)
  const [program, words] = plainNode(script, isContainer ? host : root)
  const child = isContainer
    ? spawn('unshare', [
        ...container,
        'mount --rbind "$0" "$1"; shift; exec "$@"',
        root,
        host,
        program,
        ...words,
      ])
    : spawn(program, words)
  child.stderr.pipe(process.stderr)
  t.teardown(() => child.stdin.end())
  await once(child.stdout, 'data')
  return child
}

const container = ['--mount', '--pid', '--fork', '--mount-proc', '--kill-child', 'sh', '-c']

const noContainer =
  spawnSync('unshare', [...container, 'true']).status !== 0 && 'only root can make namespaces'

const refusal = async (root: string): Promise<string> => {
  try {
    using _held = await lockNode(new NodeFiles(root))
    return ''
  } catch (cause) {
    if (!(cause instanceof LockTaken)) throw cause
    return cause.message
  }
}

void t.test('only one command changes a node at a time, others name it', async (t) => {
  const root = rootFolder(t)
  const child = await holder(t, root)
  t.match(
    await refusal(root),
    new RegExp(
      `^another nodehub is changing this node \\(process ${child.pid}\\): try again when it has ended; to have it end now, kill ${child.pid}$`,
    ),
  )
  child.kill('SIGKILL')
  await once(child, 'exit')
  t.equal(await refusal(root), '', 'the lock has ended with the process')
})

void t.test('a container and its host lock each other out', { skip: noContainer }, async (t) => {
  const root = join(rootFolder(t), 'host')
  mkdirSync(root)
  const child = await holder(t, root, { isContainer: true })
  t.match(
    await refusal(root),
    /^another nodehub is changing .*of the host or .*take the label nodehub.io.hub/,
  )
  child.stdin?.end()
  await once(child, 'exit')

  using _held = await lockNode(new NodeFiles(root))
  const [program, words] = plainNode(script, root)
  const inside = spawnSync('unshare', [...container, 'exec "$0" "$@"', program, ...words], {
    encoding: 'utf8',
  })
  t.match(
    inside.stderr,
    'another nodehub is changing this node (of the host or of another container)',
  )
})

void t.test('a waiter gets the lock once it is free, or ends after its timeout', async (t) => {
  const root = rootFolder(t)
  const files = new NodeFiles(root)
  const held = await lockNode(files)
  const wait = (patience: { ms: number; signal?: AbortSignal; onTaken?: () => void }) =>
    lockNodeOnceFree(files, patience)
  await t.rejects(wait({ ms: 0 }), { message: /another nodehub is changing/ })
  const stop = new AbortController()
  const onTaken = (): void => stop.abort(new Error('stopped'))
  await t.rejects(wait({ ms: 60_000, signal: stop.signal, onTaken }), { message: 'stopped' })
  {
    using _next = await wait({ ms: 60_000, onTaken: () => held[Symbol.dispose]() })
    t.match(await refusal(root), 'another nodehub is changing')
  }
  t.equal(await refusal(root), '')
})

async function run(command: Command, root: string, ...flags: readonly string[]): Promise<string> {
  const { code, out, err } = await said((terminal) =>
    command.run([`--root=${root}`, ...flags], terminal),
  )
  return `${code} ${out}${err}`
}

void t.test('the lock refuses commands that change a node, not dry runs', async (t) => {
  const root = yurthubRoot(rootFolder(t))
  const joining = [
    '--nodepool-name=p',
    '--host-network-pool=false',
    '--server-addr=https://10.0.0.1',
  ]
  using _held = await lockNode(new NodeFiles(root))
  const before = treeOf(root)
  for (const [command, ...flags] of [
    [adopt],
    [adopt, '--rollback'],
    [joinCommand, ...joining],
    [leave],
  ] as const) {
    t.match(
      await run(command, root, ...flags),
      /^1 nodehub \w+: another nodehub is changing this node .*\nNothing was changed/,
    )
  }
  t.match(await run(joinCommand, root, ...joining, '--dry-run'), /^0 /)
  t.match(await run(leave, root, '--dry-run'), /^0 /)
  t.match(await run(adopt, root, '--dry-run'), /^0 /)
  t.strictSame(treeOf(root), before)
})
