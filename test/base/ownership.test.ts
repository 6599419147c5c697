import t from 'tap'
import { chmodSync, chownSync, lchownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { whyUntrusted } from '../../src/base/ownership.ts'

const skip = process.getuid?.() === 0 ? false : 'takes root'
const other = 65_534

void t.test(
  'a file, its folders and the links to it are the owner’s alone',
  { skip },
  async (t) => {
    const root = t.testdir()
    const real = join(root, 'real')
    mkdirSync(real)
    const file = join(real, 'filter.mjs')
    writeFileSync(file, '')
    t.equal(whyUntrusted(file), undefined)

    await t.test('a link of root’s leads to it', async (t) => {
      const link = join(root, 'link')
      symlinkSync('real', link)
      t.equal(whyUntrusted(join(link, 'filter.mjs')), undefined)
    })

    await t.test('a link of another user’s, in a folder that all share', async (t) => {
      const shared = join(root, 'shared')
      mkdirSync(shared)
      chmodSync(shared, 0o1777)
      const link = join(shared, 'filter.mjs')
      symlinkSync(file, link)
      t.equal(whyUntrusted(link), undefined)
      lchownSync(link, other, other)
      t.match(whyUntrusted(link), /shared\/filter\.mjs belongs to the user 65534/)
    })

    await t.test('a link that leads through a folder of another user’s', async (t) => {
      const between = join(root, 'between')
      mkdirSync(between)
      symlinkSync(real, join(between, 'onward'))
      const first = join(root, 'first')
      symlinkSync('between/onward', first)
      t.equal(whyUntrusted(join(first, 'filter.mjs')), undefined)
      chownSync(between, other, other)
      t.match(whyUntrusted(join(first, 'filter.mjs')), /between belongs to the user 65534/)
      chownSync(between, 0, 0)
      chmodSync(between, 0o777)
      t.match(whyUntrusted(join(first, 'filter.mjs')), /between may be written by others/)
    })

    await t.test('links in a circle', async (t) => {
      symlinkSync('round', join(root, 'round'))
      t.throws(() => whyUntrusted(join(root, 'round')), /too many links/)
    })

    await t.test('a link that leads nowhere', async (t) => {
      symlinkSync('gone', join(root, 'dangling'))
      t.throws(
        () => whyUntrusted(join(root, 'dangling')),
        /dangling leads to .*gone, which is not there/,
      )
    })
  },
)
