import t from 'tap'
import { finding } from './corpus.ts'
import { Random } from './random.ts'
import { listRound } from './targets/lists.ts'

const draws = 200

void t.test(
  'a list whose kind stands behind an object that is no JSON is the same however it is split',
  async (t) => {
    const body = finding('findings-list-kind-after-bad-object.json')
    const outcomes = Array.from({ length: draws }, (_, seed) =>
      listRound('json', 'object', body, new Random(seed)),
    )
    t.equal(new Set(outcomes).size, 1)
  },
)

void t.test('an envelope that holds a number where its object belongs is refused', async (t) => {
  const body = finding('findings-list-envelope-of-a-number.pb')
  t.equal(listRound('protobuf', 'object', body, new Random(1)), 'refused')
})

void t.test('a list in protobuf whose metadata is a number is refused', async (t) => {
  const body = finding('findings-list-metadata-of-a-number.pb')
  t.equal(listRound('protobuf', 'object', body, new Random(1)), 'refused')
})

void t.test('a list whose first object stands on a line of its own keeps its bytes', async (t) => {
  const body = finding('findings-list-on-a-new-line.json')
  t.equal(listRound('json', 'object', body, new Random(1)), 'taken')
})

void t.test('a list in protobuf with a field number of more than 29 bits is refused', async (t) => {
  const body = finding('findings-list-field-number-too-high.pb')
  t.equal(listRound('protobuf', 'object', body, new Random(1)), 'refused')
})

void t.test('a list in protobuf whose version is a number is refused', async (t) => {
  const body = finding('findings-list-version-of-a-number.pb')
  t.equal(listRound('protobuf', 'object', body, new Random(1)), 'refused')
})
