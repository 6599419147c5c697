// The hub with a fault: each request leaves 1 KB behind.
import { onEveryRequest } from './every-request.ts'

const left: Buffer[] = []

onEveryRequest(() => void left.push(Buffer.alloc(1024)))
await import('../../src/main.ts')
