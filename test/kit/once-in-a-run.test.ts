import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { filledOnceInARun, runFolderVariable } from './once-in-a-run.ts'
import { rootFolder } from './root-folder.ts'

/** Fills the folders of all names, once it is told to, beside another thread that does the same. */
const racing = `
  const { parentPort, workerData } = require('node:worker_threads')
  const { writeFile } = require('node:fs/promises')
  void import(workerData.module).then(async ({ filledOnceInARun }) => {
    const told = new Promise((resolve) => parentPort.once('message', resolve))
    parentPort.postMessage('ready')
    await told
    const made = []
    for (const name of workerData.names)
      await filledOnceInARun(name, async (folder) => {
        made.push(name)
        await writeFile(folder + '/file', name)
      })
    parentPort.postMessage(made)
  })
`

void t.test(
  'what a run needs is made by one of those that ask, and waited for by all',
  async (t) => {
    const env = { ...process.env, [runFolderVariable]: rootFolder(t) }
    const names = Array.from({ length: 100 }, (_, at) => `folder-${at}`)
    const module = new URL('once-in-a-run.ts', import.meta.url).href
    const workerData = { module, names }
    const workers = Array.from(
      { length: 2 },
      () => new Worker(racing, { eval: true, env, workerData }),
    )
    await Promise.all(workers.map((worker) => once(worker, 'message')))
    const made = workers.map((worker) => once(worker, 'message') as Promise<[string[]]>)
    for (const worker of workers) worker.postMessage('go')
    t.strictSame((await Promise.all(made)).flat(2).toSorted(), names.toSorted())
  },
)

void t.test('a file that runs by itself has no folder of a run', async (t) => {
  const run = process.env[runFolderVariable]
  delete process.env[runFolderVariable]
  t.teardown(() => run !== undefined && (process.env[runFolderVariable] = run))
  t.equal(await filledOnceInARun('any', () => Promise.reject(new Error('made'))), undefined)
})
