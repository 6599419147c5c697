// The hub with a fault: each request keeps the event loop busy for 2 ms.
import { onEveryRequest } from './every-request.ts'

const busyMs = 2

onEveryRequest(() => {
  const until = performance.now() + busyMs
  while (performance.now() < until);
})
await import('../../src/main.ts')
