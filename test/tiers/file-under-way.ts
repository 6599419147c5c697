import type { Test } from 'tap'

/** The test that stands for the file which is being loaded. */
export const fileUnderWay: { test: Test | undefined } = { test: undefined }
