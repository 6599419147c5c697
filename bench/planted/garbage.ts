// The hub with a fault: each request allocates 20 KB, which nothing keeps.
import { onEveryRequest } from './every-request.ts'

/** Elements of an array take eight bytes each. */
const elements = (20 * 1024) / 8

let last: readonly number[] = []

onEveryRequest(() => void (last = Array.from({ length: elements }, () => last.length)))
await import('../../src/main.ts')
