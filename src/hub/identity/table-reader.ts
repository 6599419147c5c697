import { closeSync, openSync, readSync } from 'node:fs'
import { parentPort } from 'node:worker_threads'
import { establishedWith } from '../../base/socket-table.ts'
import type { Asked, Found } from './table-thread.ts'

/**
 * The thread that reads the kernel's socket tables. The kernel gives no more than a page at a time:
 * for 20,000 sockets 750 readings, each of which would be a way through Node's thread pool and a
 * turn of its loop.
 */

function find({ path, ends }: Asked): Found {
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

parentPort?.on('message', (asked: Asked) => parentPort?.postMessage(find(asked)))
