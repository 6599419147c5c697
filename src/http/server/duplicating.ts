// A program of its own: sends each listening socket that it is sent back as often as it is told,
// and ends when its parent has all of them.
import type { SendHandle } from 'node:child_process'
import type { SocketIndex, Times } from './descriptors.ts'

let index: SocketIndex = 0

process.on('message', (times: Times, handle: SendHandle) => {
  for (let n = 0; n < times; n++)
    process.send?.(index satisfies SocketIndex, handle, { keepOpen: true }, () => undefined)
  index++
})

// The sockets it was sent would keep it.
process.on('disconnect', () => process.exit())
