import { closeSync, openSync } from 'node:fs'
import { keepProcessAlive } from '../../../src/base/clock.ts'
import { isExpectedFault } from '../../../src/base/expected-fault.ts'
import { SocketTableThread } from '../../../src/hub/identity/socket-table-thread.ts'

/** Queries a table while this process may open no more files, and once it may. */
using _staying = keepProcessAlive()
await using thread = new SocketTableThread()
const files: number[] = []
try {
  for (;;) files.push(openSync('/dev/null', 'r'))
} catch {
  // No more.
}
const lines = () => thread.lines('/proc/net/tcp', [])
const refused = await lines().catch((cause: unknown) => cause)
for (const file of files) closeSync(file)
const [first, second] = await Promise.all([lines(), lines()])
process.stdout.write(JSON.stringify([isExpectedFault(refused), first, second]))
