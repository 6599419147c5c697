import { difference } from '../join/difference.ts'
import type { Change } from '../join/join.ts'
import type { Terminal } from './command.ts'

/** Prints each change of a file as lines that go and lines that come. */
export function printChanges(terminal: Terminal, changes: readonly Change[]): void {
  if (changes.length === 0) terminal.out('nothing to change\n')
  for (const { path, before, after } of changes) {
    terminal.out(`--- ${before ? path : '/dev/null'}\n+++ ${after ? path : '/dev/null'}\n`)
    const lines = difference(before?.content.toString() ?? '', after?.content.toString() ?? '')
    for (const line of lines) terminal.out(`${line}\n`)
  }
}
