import t from 'tap'
import { fuzz } from './run.ts'
import { targets } from './targets/index.ts'

/** A little more than warms them up; `npm run test:long` has rounds without number. */
const rounds = (name: string): number => (/^(watch-json|signing)/.test(name) ? 60 : 300)

const readers = targets.filter(({ name }) =>
  /^(list|watch|object|request|label|field|policy|signing|bootstrap|token)-/.test(name),
)

for (const target of readers) {
  void t.test(
    `hostile input of every kind is read rightly or refused: ${target.name}`,
    async (t) => {
      const { taken, growth } = await fuzz(target, 1, (round) => round < rounds(target.name))
      t.ok(taken > 0, 'some of it is taken')
      t.ok(growth < 4 * 1024 * 1024, `${growth} bytes are kept of what is over`)
    },
  )
}
