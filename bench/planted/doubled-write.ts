// The hub with a fault: what its store writes is written twice.
import { appendFileSync } from 'node:fs'
import { Segment } from '../../src/hub/store/log/segments.ts'

const append = Reflect.get(Segment.prototype, 'append') as Segment['append']
Segment.prototype.append = async function (parts, length) {
  await append.call(this, parts, length)
  appendFileSync(`${this.path}.again`, Buffer.concat(parts))
}
await import('../../src/main.ts')
