// A program of its own: sends each listening socket that it gets back as many times as the message
// says, and exits when its parent has all of them.
import type { SendHandle } from 'node:child_process'
import type { SocketIndex, Times } from './descriptors.ts'

let index: SocketIndex = 0

process.on('message', (times: Times, handle: SendHandle) => {
  for (let n = 0; n < times; n++)
    process.send?.(index satisfies SocketIndex, handle, { keepOpen: true }, () => undefined)
  index++
})

// The sockets that it got would keep it alive.
process.on('disconnect', () => process.exit())
