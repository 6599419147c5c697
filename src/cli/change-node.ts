import { messageOf } from '../config/settings.ts'
import { CannotAdopt } from '../node/adopt/plan.ts'
import { NodeFiles } from '../node/join/node-files.ts'
import type { NodeLocking } from '../node/join/node-lock.ts'
import type { ExitCode, Terminal } from './command.ts'

/** A command that changes this node. */
interface NodeChange {
  /** As it is typed. */
  readonly command: string
  readonly values: { readonly root: string; readonly 'dry-run': boolean }
  readonly terminal: Terminal
  /** Takes the lock of the node. */
  readonly lock: NodeLocking
  /** What a failure has left, and how to go on. */
  readonly ending: () => string
}

/** Acts under the lock of the node, unless nothing is changed. A failure is exit code 1. */
export async function changeNode(
  { command, values, terminal, lock, ending }: NodeChange,
  act: () => Promise<ExitCode>,
): Promise<ExitCode> {
  try {
    using _lock = values['dry-run'] ? undefined : await lock(new NodeFiles(values.root))
    return await act()
  } catch (cause) {
    const reasons = cause instanceof CannotAdopt ? cause.reasons : [messageOf(cause)]
    for (const reason of reasons) terminal.err(`nodehub ${command}: ${reason}\n`)
    terminal.err(`${ending()}\n`)
    return 1
  }
}

/** Throws where a step has failed for this reason. */
export function assertDone(what: string, why: string | undefined): void {
  if (why !== undefined) throw new Error(`${what}: ${why}`)
}

/** Long enough to pull an image over a slow link. */
export const pullMs = 300_000
