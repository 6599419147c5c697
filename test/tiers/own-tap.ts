import { fileUnderWay } from './file-under-way.ts'

/**
 * What a test file is given for tap where it is one of several: this module is loaded anew for each
 * of them.
 */
// oxlint-disable-next-line import/no-default-export -- as tap's is
export default fileUnderWay.test
