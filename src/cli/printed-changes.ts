import { unifiedDiff } from '../base/unified-diff.ts'
import type { FileChange } from '../node/join/join.ts'
import type { Rights } from '../node/join/node-files.ts'
import type { Terminal } from './command.ts'

/** Prints each changed file: changed mode and owner, removed and added lines. */
export function printChanges(terminal: Terminal, changes: readonly FileChange[]): void {
  if (changes.length === 0) terminal.out('nothing to change\n')
  for (const { path, before, after } of changes) {
    terminal.out(`--- ${before ? path : '/dev/null'}\n+++ ${after ? path : '/dev/null'}\n`)
    if (before && after && shown(before) !== shown(after))
      terminal.out(`mode, uid, gid: ${shown(before)} becomes ${shown(after)}\n`)
    terminal.out(unifiedDiff(before?.content.toString() ?? '', after?.content.toString() ?? ''))
  }
}

const shown = ({ mode, uid, gid }: Rights): string =>
  `${mode.toString(8).padStart(4, '0')} ${uid} ${gid}`
