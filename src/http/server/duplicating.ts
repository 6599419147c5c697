// A program of its own: sends each listening socket that it gets back as many times as the message
// says, with the index of that socket, and exits when its parent has all of them.
import type { SendHandle } from 'node:child_process'

let index = 0

process.on('message', (times: number, handle: SendHandle) => {
  for (let n = 0; n < times; n++) process.send?.(index, handle, { keepOpen: true }, () => undefined)
  index++
})

// The sockets that it got would keep it alive.
process.on('disconnect', () => process.exit())
