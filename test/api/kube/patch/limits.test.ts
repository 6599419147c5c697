import t from 'tap'
import type { Json } from '../../../../src/api/kube/json.ts'
import { checkDepth, maxDepth } from '../../../../src/api/kube/patch/limits.ts'
import { failure } from './kit.ts'

void t.test('a patch one level beyond the nesting limit is a bad request', async (t) => {
  for (const wrap of [(value: Json): Json => ({ a: value }), (value: Json): Json => [value]]) {
    let value: Json = 'x'
    for (let depth = 0; depth < maxDepth; depth++) value = wrap(value)
    checkDepth(value)
    t.match(failure(() => checkDepth(wrap(value))).status, {
      code: 400,
      message: `the patch nests deeper than ${maxDepth} levels`,
    })
    t.equal(failure(() => checkDepth({ flat: 1, deep: wrap(value) })).status.code, 400)
  }
})
