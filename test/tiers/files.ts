// Runs test files, several at a time, and prints TAP. Each is a program of its own that Node runs
// as it is. `tap` would have every Node that a test starts load hooks that note what it imports,
// for coverage that is not asked for: a third of the processor time of a file.
import t from 'tap'

const [jobs, ...files] = process.argv.slice(2)

/** Of a file, so that one that hangs ends the run: no figure of how long a test may take. */
const seconds = 300

/**
 * What a test file's Node is started with. Most files are over before V8 has found out how much
 * memory they take: with room from the start, young objects are collected a tenth as often.
 */
const options = [
  '--min-semi-space-size=16',
  `--import=${new URL('./without-hooks.ts', import.meta.url).href}`,
]

t.jobs = Number(jobs)
t.setTimeout(0)
for (const file of files)
  // env: tap's own spawn adds those hooks to NODE_OPTIONS, whatever environment it is given.
  void t.spawn('env', ['-u', 'NODE_OPTIONS', process.execPath, ...options, file], {
    name: file,
    buffered: true,
    timeout: seconds * 1000,
    env: { ...process.env, TAP_TIMEOUT: `${seconds}` },
  })
