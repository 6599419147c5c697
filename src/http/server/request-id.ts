import { randomBytes } from 'node:crypto'

const prefix = randomBytes(6).toString('hex')
let last = 0

/** Names a request among those of this node's hubs: this process, and a number in it. */
export const requestId = (): string => `${prefix}-${++last}`
