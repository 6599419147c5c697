import t from 'tap'
import fs from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { Adoption, type AdoptionRecord } from '../../../src/node/adopt/adoption-record.ts'
import { changeImage, imageIn } from '../../../src/node/adopt/hub-image.ts'
import { planAdoption } from '../../../src/node/adopt/plan.ts'
import { rollBack, swapIn } from '../../../src/node/adopt/swap.ts'
import { NodeFiles } from '../../../src/node/join/node-files.ts'
import { killedAt } from '../join/killed.ts'
import { treeOf } from '../join/node-root.ts'
import { obedient, settings, yurthubRoot } from './yurthub-root.ts'

const state = '/var/lib/nodehub'
const staticPod = '/etc/kubernetes/manifests/nodehub.yaml'

async function adoptedRoot(folder: string): Promise<string> {
  const root = yurthubRoot(folder)
  const files = new NodeFiles(root)
  await swapIn(files, state, planAdoption(files, settings), obedient)
  return root
}

const recordOf = (root: string): AdoptionRecord => {
  const record = new Adoption(new NodeFiles(root), state).read()
  if (record === undefined) throw new Error('the node is not adopted')
  return record
}

const change = (root: string, image: string): void =>
  changeImage(new NodeFiles(root), state, recordOf(root), { image, staticPod })

const back = (root: string): Promise<readonly string[]> =>
  rollBack(new NodeFiles(root), state, recordOf(root), obedient)

const read = (root: string, path: string): string => fs.readFileSync(join(root, path), 'utf8')

interface Pod {
  readonly spec: { readonly containers: readonly [{ readonly args: readonly string[] }] }
}

const argsOf = (root: string): readonly string[] =>
  (parse(read(root, staticPod)) as Pod).spec.containers[0].args

void t.test(
  'an upgrade changes the image and the report flag only, and rollback works',
  async (t) => {
    const root = await adoptedRoot(join(t.testdir(), 'node'))
    const before = treeOf(yurthubRoot(join(t.testdirName, 'before')), state)
    const args = argsOf(root)
    change(root, 'hub:2')
    t.equal(imageIn(read(root, staticPod)), 'hub:2')
    t.strictSame(argsOf(root), [...args, '--offline-ready-condition'])
    const once = treeOf(root)
    change(root, 'hub:2')
    t.strictSame(treeOf(root), once)
    t.strictSame(await back(root), [], 'nothing was changed by others')
    t.strictSame(treeOf(root, state), before)
  },
)

void t.test('an operator’s edits stay, and rollback keeps a copy', async (t) => {
  const root = await adoptedRoot(t.testdir())
  const flags = '$1--v=4 # while we look\n$1--offline-ready-condition=false'
  const edited = read(root, staticPod).replace(/( +- )--v=2/, flags)
  fs.writeFileSync(join(root, staticPod), edited)
  change(root, 'hub:2')
  t.match(read(root, staticPod), '--v=4 # while we look')
  t.ok(argsOf(root).includes('--offline-ready-condition=false'))
  t.notOk(argsOf(root).includes('--offline-ready-condition'))
  t.match(await back(root), [/nodehub\.yaml was changed since: a copy is in/])
})

void t.test('a manifest that is not understood keeps its image', async (t) => {
  const root = await adoptedRoot(t.testdir())
  fs.writeFileSync(join(root, staticPod), 'kind: Pod\n')
  const before = treeOf(root)
  t.equal(imageIn('kind: Pod\n'), '')
  t.throws(() => change(root, 'hub:2'), /is not understood/)
  t.strictSame(treeOf(root), before)
})

void t.test('a change killed at any step can be resumed or undone', async (t) => {
  const base = await adoptedRoot(join(t.testdir(), 'base'))
  const before = treeOf(yurthubRoot(join(t.testdirName, 'before')), state)
  const done = join(t.testdirName, 'done')
  const copyTo = (path: string, from = base): string => {
    fs.cpSync(from, path, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true })
    return path
  }
  change(copyTo(done), 'hub:2')
  for (let at = 1; ; at++) {
    const root = copyTo(join(t.testdirName, `killed-${at}`))
    const act = async (): Promise<void> => change(root, 'hub:2')
    if (await killedAt(at, () => act().catch(() => undefined))) break
    const other = copyTo(join(t.testdirName, `other-${at}`), root)
    change(other, 'hub:2')
    t.strictSame(treeOf(other), treeOf(done), `killed at its step ${at}: changed`)
    await back(root)
    t.strictSame(treeOf(root, state), before, `killed at its step ${at}: back`)
  }
})
