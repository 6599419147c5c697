import { closeSync, openSync, readSync } from 'node:fs'
import { parentPort } from 'node:worker_threads'
import { establishedWith } from '../../base/socket-table.ts'
import type { SocketQuery, SocketQueryResult } from './socket-table-thread.ts'

/**
 * The thread that reads the kernel's socket tables. The kernel returns at most a page per read:
 * 20,000 sockets take 750 reads, each of which would otherwise be a trip through Node's thread pool
 * and a turn of the event loop.
 */

function answer({ path, ends }: SocketQuery): SocketQueryResult {
  try {
    const file = openSync(path, 'r')
    try {
      const read = (into: Buffer, from: number): number =>
        readSync(file, into, from, into.length - from, null)
      return { lines: establishedWith(ends, read) }
    } finally {
      closeSync(file)
    }
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    return { code, message }
  }
}

parentPort?.on('message', (query: SocketQuery) => parentPort?.postMessage(answer(query)))
