// The functions of the simulated driver, as its table of entries.
#ifndef INFER_SIM_ENTRIES_H
#define INFER_SIM_ENTRIES_H

// Number of entries, the driver's name of entry i and its function.
int simEntries(void);
const char *simEntryName(int i);
void *simEntryFunction(int i);

#endif
