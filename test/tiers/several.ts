// Runs several test files in this process, one after the other, each as a subtest that is named
// after it: `node several.ts FILE...`. Most files take less time than Node and tap take to start.
import { registerHooks } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { keepProcessAlive } from '../../src/base/clock.ts'
import { fileUnderWay } from './file-under-way.ts'

// Tap names folders of tests after the arguments of the program.
const files = process.argv.splice(2)
const urls = new Set(files.map((file) => pathToFileURL(resolve(file)).href))

/** A test file that imports tap is given the subtest that stands for it. */
registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'tap' && urls.has(context.parentURL ?? '')
      ? next(`./own-tap.ts?of=${context.parentURL}`, { ...context, parentURL: import.meta.url })
      : next(specifier, context),
})

const { default: t } = await import('tap')
t.setTimeout(0)
// Timers of a hub keep no process alive: between the end of one file's servers and the start of the
// next ones nothing may, and the process would end in the middle of a test.
using _alive = keepProcessAlive()
for (const file of files) {
  await t.test(file, async (test) => {
    fileUnderWay.test = test
    await import(pathToFileURL(resolve(file)).href)
  })
}
