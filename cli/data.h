/* SPDX-License-Identifier: MIT */
/* The actions of tally data; argv[0] is the action's name. They answer the exit status. */
#ifndef CLI_DATA_H
#define CLI_DATA_H

int data_info(int argc, char **argv);
int data_check(int argc, char **argv);
int data_cut(int argc, char **argv);
int data_merge(int argc, char **argv);
int data_pack(int argc, char **argv);

#endif
