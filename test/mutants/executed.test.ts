import { Session } from 'node:inspector'
import { runInThisContext } from 'node:vm'
import t from 'tap'
import { either, executedOf, ran, type FunctionCoverage } from './executed.ts'

/** Runs a script, and what V8 counts of it. */
function counted(source: string): readonly FunctionCoverage[] {
  const session = new Session()
  session.connect()
  let functions: readonly FunctionCoverage[] = []
  session.post('Profiler.enable')
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  runInThisContext(source, { filename: 'counted.js' })
  session.post('Profiler.takePreciseCoverage', (_, { result }) => {
    functions = result.find(({ url }) => url === 'counted.js')?.functions ?? []
  })
  session.disconnect()
  return functions
}

void t.test('what ran is told from what did not, down to an operand', async (t) => {
  const source = `(() => {
  const one = () => { 'ran' }
  const two = () => { 'unreached' }
  one()
  if (one === two) { 'unreached' } else { 'ran' }
  const three = one === two ? 'unreached' : 'ran'
  const four = three && ('ran' || 'unreached')
  switch (four) { case 'x': 'unreached'; break; default: 'ran' }
  return
  'unreached'
})()`
  const executed = executedOf(counted(source))
  for (const { index, 0: word } of source.matchAll(/'(?:ran|unreached)'/g))
    t.equal(ran(executed, index), word === "'ran'", `${word} at ${index}`)
})

void t.test('what ran in one of several processes ran', async (t) => {
  t.strictSame(either([0, 5, 10, 20], [3, 7, 20, 30, 40, 41]), [0, 7, 10, 30, 40, 41])
  t.strictSame(either([], [1, 2]), [1, 2])
  const executed = [2, 4, 6, 8]
  t.strictSame(
    [1, 2, 3, 4, 5, 6, 8].map((offset) => ran(executed, offset)),
    [false, true, true, false, false, true, false],
  )
})
