"""RocketMQ's store format: conversion between bytes and values. Must not import os, io, mmap or pathlib."""
